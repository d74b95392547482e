"""Peak memory of a fit beyond holding X and y, as a fraction of X, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys

CASES = [
    # n, d, order, method, largest fraction aimed at
    (2**19, 32, "C", "FastIHM", 0.60),
    (2**19, 32, "F", "FastIHM", 0.60),
    (2**19, 32, "C", "IHM", 0.60),
    (2**17, 1024, "C", "FastIHM", 0.25),
    (2**17, 1024, "F", "FastIHM", 0.25),
    (2**17, 1024, "C", "IHM", 0.25),
    (2**19, 32, "C", "ObjectivePerturbation", 0.30),
    (2**16, 1024, "C", "ObjectivePerturbation", 0.30),
    (2**16, 1024, "F", "ObjectivePerturbation", 0.30),
]

CHILD = """
import sys
import numpy as np
import fastmix

n, d, order, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
kb = lambda key: int(next(l for l in open("/proc/self/status") if l.startswith(key)).split()[1])
options = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}
if method == "FastIHM":
    options["sketch_size"] = 800 * 32 if d == 32 else 8192
# Warm up on a small problem: libraries and their buffers are not part of a fit.
small = np.random.default_rng(0).standard_normal((4096, 8))
warm = {name: value for name, value in options.items() if name != "sketch_size"}
getattr(fastmix, method)(**warm).fit(small, small[:, 0])
X = np.empty((n, d), order=order)
rng = np.random.default_rng(0)
for i in range(0, n, 4096):
    X[i : i + 4096] = rng.standard_normal((min(4096, n - i), d)) / (2 * np.sqrt(d))
y = rng.uniform(-1, 1, n)
open("/proc/self/clear_refs", "w").write("5")
before = kb("VmRSS")
getattr(fastmix, method)(**options).fit(X, y)
print((kb("VmHWM") - before) * 1024 / X.nbytes)
"""


def main() -> None:
    print(f"{'n':>8} {'d':>5} order {'method':>21} {'extra / X':>10} target")
    for n, d, order, method, target in CASES:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(n), str(d), order, method],
            capture_output=True,
            text=True,
            check=True,
        )
        print(f"{n:>8} {d:>5} {order:>5} {method:>21} {float(done.stdout):>10.3f} <= {target}")


if __name__ == "__main__":
    main()
