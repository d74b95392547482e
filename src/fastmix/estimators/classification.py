"""Private classifiers."""

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from fastmix import engine
from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.certificate import jsonable
from fastmix.data import Report, TargetMap
from fastmix.data.scaling import PublicScaling
from fastmix.engine import Method
from fastmix.errors import PrivacyLeakWarning, caller_level
from fastmix.estimators._documentation import estimator
from fastmix.estimators._input import Arrays, Source
from fastmix.estimators._labels import LabelCodec, public_classes, public_weights
from fastmix.estimators.evaluation import scaled_coefficients
from fastmix.estimators.models import EngineModel
from fastmix.schema.values import check_finite


@estimator
class PrivateLogisticRegression(ClassifierMixin, EngineModel):  # type: ignore[misc]
    """Private logistic regression by objective perturbation that adapts to the data.

    A first stage spends 15% of the budget on noisy second moments and counts of gradients, as in
    `PrivateLinearRegression`; they set the coordinates, clipping level and ridge of the perturbed
    logistic loss, whose minimiser is released. More than two classes are fitted one against the
    rest, under one account: coefficients and odds ratios of a class are those of a logistic
    regression of this class against all others together (docs/losses.md).

    Parameters
    ----------
    {parameters}
    {engine_parameters}
    classes : array-like, default=None
        Public list of the labels, numbers or text. A record with another label counts as absent.
        None takes the labels from the data with a `PrivacyLeakWarning`.
    class_weight : dict, default=None
        Public weights by class; 1 for classes that are not named.
    min_listed : float, default=0.0
        Least share of records whose label is in the list. Above 0, a count with noise, for 2% of
        epsilon, stops the fit with a `DataError` if there are evidently fewer; such a fit is
        charged for the count only.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients of the log-odds, in the user's units.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts.
    {attributes}
    chosen_ : dict
        Settings that the fit chose from released values, in scaled units: the spread of slopes that
        the first stage found, the clipping level of gradients, the ridge, and the share of the
        coefficients that was kept; for more than two classes a list of each.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Section 8.

    Examples
    --------
    >>> from fastmix import PrivateLogisticRegression
    >>> from fastmix.datasets import make_sphere
    >>> X, y = make_sphere(n=4096, d=4, random_state=0)
    >>> model = PrivateLogisticRegression(epsilon=1.0, data_norm=1.0, classes=[False, True])
    >>> model.fit(X, y > 0).privacy_.epsilon <= 1.0
    True
    """

    inference: bool = True
    classes: Any = None
    class_weight: Any = None
    min_listed: float = 0.0

    _method: ClassVar[type[Method]] = engine.LogisticObjective
    _ends: ClassVar[str] = "classes"
    _title: ClassVar[str] = "Private logistic regression"
    _odds: ClassVar[bool] = True
    _spread: ClassVar[bool] = False  # labels have no errors of one variance

    #: Whether the classes were taken from the data.
    _found = False

    def _fit(self, data: Source, report: Report | None = None) -> None:
        if self.classes is not None or not isinstance(data, Arrays) or data.y is None:
            super()._fit(data, report)
            return
        labels = np.asarray(data.y)
        if labels.dtype.kind == "f":
            check_finite(labels)
        found = np.unique(labels)
        check_classification_targets(found)
        if len(found) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; y has one class only."
            )
        if not np.isinf(self.epsilon):
            warnings.warn(
                "classes not given: taken from the data, so the result is NOT private. Pass "
                "classes from public knowledge.",
                PrivacyLeakWarning,
                stacklevel=caller_level(),
            )
        # The fit knows the classes; the parameter itself stays as it was given.
        self.classes, self._found = found, True
        super()._fit(data, report)
        self.classes = None
        del self._found

    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds of the second class, or of each class against the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log-odds.
        """
        check_is_fitted(self)
        scores = self._features(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores  # type: ignore[no-any-return]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row.

        Returns
        -------
        ndarray of shape (n_samples,)
            The likeliest class of each.
        """
        scores = np.asarray(self.decision_function(X))
        at = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[at])

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probability of each class; for more than two those against the rest, over their sum.
        """
        scores = np.asarray(self.decision_function(X))
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        likely = np.exp(log_expit(scores) - log_expit(scores).max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Predict logarithms of probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithm of the probability of each class.
        """
        scores = np.asarray(self.decision_function(X))
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Privacy noise swamps the signal on the few hundred rows of a unit test.
        tags.classifier_tags.poor_score = True
        return tags

    def _labels(self) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return the public classes and their weights."""
        if self.classes is None:
            raise value_error("classes", "be given for data that are not in memory", None)
        classes = public_classes(self.classes)
        return classes, public_weights(self.class_weight, classes)

    def _codec(self) -> LabelCodec:
        return LabelCodec(*self._labels())

    def _check_parameters(self) -> None:
        if self.classes is not None:
            self._labels()
        super()._check_parameters()

    def _as_fitted(self) -> Any:
        model = copy(self)
        model.classes = self.classes_
        return model

    def _units(self, scaling: PublicScaling) -> PublicScaling:
        return replace(scaling, target_map=TargetMap())

    def _scaled(self, scaling: PublicScaling) -> FloatArray:
        found, units = zip(self.coef_, self.intercept_, strict=True), self._units(scaling)
        return np.concatenate([scaled_coefficients(units, *each) for each in found])

    def _bounds_y(self) -> Any:
        return None if self._found else (0.0, 1.0)

    def _resolve(self) -> Method:
        count = 2 if self.classes is None else len(self.classes)
        return engine.LogisticObjective(n_classes=count, **self._fixed)

    def _store_coefficients(self, theta: FloatArray, scaling: PublicScaling) -> None:
        super()._store_coefficients(theta, scaling)
        self.coef_, self.intercept_ = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        self.classes_ = self._labels()[0]

    def _facts(self) -> dict[str, Any]:
        classes, weights = self._labels()
        return {"classes": jsonable(classes.tolist()), "class_weight": weights.tolist()}
