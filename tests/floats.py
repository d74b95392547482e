"""Floating-point noise, for tests that draw the same noise once more with NumPy alone."""

import numpy as np

from fastmix.releases import Noise


class FloatNoise(Noise):
    """Noise of the same scale on the same grid, from NumPy's own samplers."""

    def _floored(self, law, values, step, scale):
        draw = self.rng.standard_normal if law == "gaussian" else self.rng.laplace
        whole = np.trunc(values / step)
        noise = np.floor(values / step - whole + scale * draw(size=values.shape))
        return whole, noise.astype(np.int64)
