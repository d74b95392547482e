"""Sensitivities of exact sums, each a named function, so that each can be tested.

What is computed is rounded: releases add the room for it (`fastmix.releases.rounding`).
Neighbours are zero-out: one row of X (as the mechanism sees it, after the public map) and its
target are replaced by zeros, or the reverse.
``c_x`` bounds the norm of a row.
"""

import math


def distortion_sensitivity(coherence: float, c_x: float = 1.0) -> float:
    r"""Sensitivity of :math:`\hat m = \max_i \|(S^\top S - I) X\|_i`.

    Paper: Lemma 4; the factor c_x as in Algorithm 3.
    Deviation: for unit columns, where the diagonal of S'S - I is zero.
    """
    return c_x * coherence


def sketched_eigenvalue_sensitivity(m: float, c_x: float = 1.0) -> float:
    r"""Sensitivity of :math:`\lambda_{\min}(X^\top S^\top S X)` around data with distortion m.

    Paper: Lemma 5 with Lambda = 1; the factors c_x as in Algorithm 3.
    Deviation: for unit columns. It is a local sensitivity: ``m``, a released upper bound, must be
    at least the distortion of the data at hand, which holds outside the rare event.
    """
    return c_x * (c_x + 2.0 * m)


def eigenvalue_sensitivity(c_x: float = 1.0) -> float:
    r"""Sensitivity of :math:`\lambda_{\min}(X^\top X)`.

    Paper: Weyl's inequality, as in the proof of Lemma 5 with S = I.
    """
    return c_x**2


def gradient_sensitivity(clip: float, c_x: float = 1.0) -> float:
    r"""Sensitivity (l2) of :math:`X^\top \mathrm{clip}_C(y - X\theta)` for any fixed theta.

    Paper: Appendix E, eq. for the gradient. A zero row adds nothing: one clipped term differs.
    """
    return clip * c_x


def gram_sensitivity(c_x: float = 1.0) -> float:
    r"""Sensitivity (Frobenius, and so l2 over the upper triangle) of :math:`X^\top X`.

    Paper: AdaSSP (Wang, 2018). :math:`\|x x^\top\|_F = \|x\|^2`, and the upper triangle is no
    longer than the matrix.
    """
    return c_x**2


def sketched_gram_sensitivity(m: float, c_x: float = 1.0) -> float:
    r"""Sensitivity (Frobenius) of :math:`X^\top S^\top S X` around data with distortion m.

    Paper: beyond it; the eigenvalue's of Lemma 5 holds for the whole matrix
    (docs/proofs/symmetric_noise.md, Section 2). It is a local sensitivity for unit columns: ``m``,
    a released upper bound, must be at least the distortion of the data at hand.
    """
    return c_x * (c_x + 2.0 * m)


def shortened_gram_sensitivity(longest: float, k2: int, entries: int, c_x: float = 1.0) -> float:
    r"""Sensitivity (Frobenius) of :math:`\sum_r \pi(z_r) \pi(z_r)^\top` for a sparse sketch.

    Rows :math:`z_r` of the k2 rows of the sketch are shortened to ``longest``, L. A record moves s
    of them, s being ``entries``, each by at most :math:`a = C/\sqrt{s}`.

    Paper: beyond it; docs/proofs/sparse.md, Section 2. It holds for all data. The factor of a is
    for the rounding of sums and of shortened rows, the last term for that of products of k2 rows.
    """
    a = c_x / math.sqrt(entries) * (1.0 + 2.0**-20)
    along, across = min(a, longest), min(a, math.sqrt(2.0) * longest)
    each = max(
        along * (2.0 * longest - along),
        across * math.sqrt(2.0 * longest**2 - across**2 / 2.0),
    )
    return entries * each + 2.0**-52 * (k2 * longest) ** 2


def moment_sensitivity(c_x: float = 1.0, c_y: float = 1.0) -> float:
    r"""Sensitivity (l2) of :math:`X^\top y`.

    Paper: AdaSSP (Wang, 2018).
    """
    return c_x * c_y


def count_sensitivity() -> float:
    r"""Sensitivity (l2) of counts over disjoint bins, where an absent record counts nowhere.

    Paper: standard; beyond the paper in its use (docs/proofs/confidence.md).
    """
    return 1.0


def level_sensitivity(categories: int) -> float:
    r"""Sensitivity (l2) of counts of the levels of so many categories: a record is in one of each.

    Paper: beyond it; docs/proofs/tables.md, Section 2.
    """
    return math.sqrt(categories)


def total_sensitivity(c_x: float = 1.0) -> float:
    r"""Sensitivity (l2) of the sum of the rows, :math:`X^\top 1`.

    Paper: beyond it; one row is added or taken away.
    """
    return c_x


def slope_sensitivity(lipschitz: float) -> float:
    r"""Sensitivity (l2) of :math:`\sum_i f'_i z_i` for a loss whose gradients are L at the most.

    Paper: beyond it; docs/proofs/tables.md, Section 2. The weights of a person's rows add up to 1
    at most, so that the gradients of a person are no longer together.
    """
    return lipschitz


def second_moment_sensitivity() -> float:
    r"""Sensitivity (Frobenius) of :math:`\sum_i z_i z_i^\top` for rows z no longer than 1.

    Paper: beyond it; :math:`\|z z^\top\|_F = \|z\|^2`. The diagonal joined by the entries above it
    times sqrt(2) has this norm.
    """
    return 1.0


def line_sensitivity() -> float:
    r"""Sensitivity (l2) of the sums of :math:`(p, e, pr, p^2)` for p, r and e in [-1, 1].

    Paper: beyond it; each of the four changes by at most 1.
    """
    return 2.0


def target_sensitivity() -> float:
    r"""Sensitivity of :math:`\sum_i y_i` for targets in [-1, 1].

    Paper: beyond it; one target is added or taken away.
    """
    return 1.0


def size_sensitivity() -> float:
    r"""Sensitivity of the number of records, where one is added or taken away.

    Paper: beyond it; docs/proofs/rows.md.
    """
    return 1.0


def unlisted_sensitivity() -> float:
    r"""Sensitivity of :math:`s\sum_i w_i - \sum_{i \in L} w_i` for a share s in (0, 1).

    A record has :math:`(s - 1_L) w`, an absent one 0, or s where their number is public: at most 1
    apart.

    Paper: beyond it; docs/proofs/rows.md, Section 5.
    """
    return 1.0


def weight_sensitivity() -> float:
    r"""Sensitivity of :math:`\sum_i w_i` for weights of a record that add up to at most 1.

    Paper: beyond it; an absent record has the weight 0 (docs/proofs/people.md, Section 6).
    """
    return 1.0


def columns_sensitivity(columns: int) -> float:
    r"""Sensitivity (l2) of counts of single columns, where a record counts once in each column.

    Paper: standard; beyond the paper in its use (docs/proofs/bounds.md).
    """
    return math.sqrt(columns)


def curvature_sensitivity(square: float) -> float:
    r"""Sensitivity (Frobenius) of :math:`\sum_i \kappa_i z_i z_i^\top`.

    Paper: beyond it; ``square`` bounds :math:`\kappa \|z\|^2`, the norm of a term, for every record
    (docs/proofs/inference.md).
    """
    return square


def gradient_square_sensitivity(lipschitz: float) -> float:
    r"""Sensitivity (Frobenius) of :math:`\sum_i g_i g_i^\top` for gradients no longer than L.

    Paper: beyond it; :math:`\|g g^\top\|_F = \|g\|^2 \le L^2` (docs/proofs/inference.md).
    """
    return lipschitz**2


def layer_sensitivity() -> float:
    r"""Sensitivity (l2) of sums over layers, with weights of norm 1.

    Paper: beyond it; a record fills each layer by a part in [0, 1], an absent one by 0
    (docs/proofs/scores.md).
    """
    return 1.0


def contrast_sensitivity(level: float, count: int) -> float:
    r"""Sensitivity (l2) of the sums of :math:`\min(r_k^2, C^2) - \text{mean}_k` over k models.

    Paper: beyond it; K numbers in [0, C^2] are at most :math:`C^2 \sqrt{K}/2` from their mean, in
    the l2 norm, and those of an absent record are 0 (docs/proofs/scores.md).
    """
    return level**2 * math.sqrt(count) / 2.0
