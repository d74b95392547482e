"""Dense oracles: what the fast code must equal, from the matrix itself."""

import numpy as np
import pytest


def _unit_columns(S):
    norms = np.linalg.norm(S, axis=0)
    norms[norms < 1e-12] = 0.0
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return S * inverse, norms


@pytest.fixture
def dense_coherence():
    def coherence(S):
        U, _ = _unit_columns(S)
        gram = np.abs(U.T @ U)
        np.fill_diagonal(gram, 0.0)
        return gram.max()

    return coherence


@pytest.fixture
def dense_distortion():
    def distortion(S, X):
        U, norms = _unit_columns(S)
        X_scaled = norms[:, None] * X.astype(np.float64)
        return np.linalg.norm(U.T @ (U @ X_scaled) - X_scaled, axis=1).max()

    return distortion
