"""Throw malformed calls at the compiled kernels: ``python fuzz_bindings.py --calls 100000``.

A call starts valid and gets one to three arguments spoiled.  It may return or refuse; it must not
crash, raise anything else, or write outside its arrays, which lie between guard values.  The call
in flight is kept in a file, so that a crash can be repeated.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections import Counter
from importlib import import_module

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

GUARD, MARK = 64, -12345.0
REFUSALS = (TypeError, ValueError, BufferError, MemoryError)


def guarded(shape, dtype=np.float64, order="C"):
    """Return an array whose memory has guard values on both sides, and that memory."""
    size = math.prod(shape)
    memory = np.full(size + 2 * GUARD, 77 if np.dtype(dtype).kind in "iu" else MARK, dtype=dtype)
    array = memory[GUARD : GUARD + size].reshape(shape, order=order)
    array[...] = 1
    return array, memory


def intact(memory, size):
    value = 77 if memory.dtype.kind in "iu" else MARK
    return (memory[:GUARD] == value).all() and (memory[GUARD + size :] == value).all()


def valid_call(name, n, d, dtype, constant, mapped):
    """Return the arguments of a call that is in order, and the guarded memories."""
    memories = []

    def array(*shape, dtype=np.float64, order="C"):
        made, memory = guarded(shape, dtype, order)
        memories.append((memory, made.size))
        return made

    p = d + (constant != 0.0)
    n_pad = max(2, 1 << (n - 1).bit_length())
    if name == "fwht":
        return [array(n_pad, d, dtype=dtype), array(n_pad, d, dtype=dtype), 1.0, 2], memories
    common = [
        array(n, d, dtype=dtype),
        array(4 * d if mapped else 0),
        array(n if mapped else 0),
        constant,
    ]
    if name == "map_rows":
        own = [n // 2, array(n - n // 2, p, order="F"), 2]
    elif name == "squared_norms":
        own = [array(n), 2]
    elif name == "gram":
        own = [array(p * p), 2]
    elif name == "moments":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array((p + 1) ** 2), 2]
    elif name == "gradient":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array(p), 0.5, array(p), 2]
    elif name == "slopes":
        square = array(p * p if mapped else 0)
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array(p), array(6), array(n if mapped else 0)]
        own += [array(p), array(p), square, 2]
    elif name == "curved":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array(p), array(6), array(n if mapped else 0)]
        own += [array(p), mapped, array(p), 2]
    elif name == "lengths":
        size = p + mapped
        own = [array(n if mapped else 0), -1.0, 1.0, 0.0, 1.0, array(size * size), mapped]
        own += [0.1, 0.1, 0.1, array(n), 2]
    elif name == "second_moments":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array((p + 1) ** 2), 0.5, array((p + 1) ** 2), 2]
    elif name == "slope_counts":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array(p), array(n), 0.5, array(6), array(5), 2]
    elif name == "residuals":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array(p), array(n), 2]
    elif name == "terms":
        own = [array(n), -1.0, 1.0, 0.0, 1.0, array(p), array(6), array(n if mapped else 0)]
        own += [array(n), array(n), 2]
    elif name.startswith("sparse"):
        own = [array(4 * n, dtype=np.uint32), 4, 8, array(8 * p), 2]
    elif name.startswith("kerdock"):
        offset = 0 if name == "kerdock" else 70
        forms = array((offset + n + 63) // 64 * 6, dtype=np.uint32)
        place = [6] if name == "kerdock" else [6, offset]
        own = [array(offset + n, dtype=np.int8), forms, *place, array(64 * p), 2]
    else:
        signs, rows = array(n, dtype=np.int8), array(3, dtype=np.int64)
        rows[:] = np.arange(3) % n_pad
        own = [signs, rows, n_pad, array(3 * p), True, 2]
    return [*common, *own], memories


def misaligned(a):
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)
    return np.frombuffer(raw.data, dtype=a.dtype, offset=1, count=a.size).reshape(a.shape)


def repeated(a, shape):
    return np.lib.stride_tricks.as_strided(a, shape=shape, strides=(0,) * len(shape))


def odd_steps(a):
    record = np.zeros(a.shape, dtype=[("pad", np.uint8), ("value", a.dtype)])
    return record["value"]


def limits(a):
    return np.iinfo(a.dtype) if a.dtype.kind in "iu" else np.finfo(a.dtype)


def read_only(a):
    copy = a.copy()
    copy.setflags(write=False)
    return copy


SPOIL_ARRAY = {
    "longer": lambda a: np.ones([k + 3 for k in a.shape], dtype=a.dtype),
    "shorter": lambda a: a[tuple(slice(0, max(0, k - 1)) for k in a.shape)],
    "half": lambda a: a[: a.shape[0] // 2] if a.ndim else a,
    "empty": lambda a: a[:0] if a.ndim else a,
    "no columns": lambda a: a[..., :0] if a.ndim else a,
    "scalar": lambda a: np.array(1.0),
    "one more axis": lambda a: a[None],
    "flat": lambda a: a.reshape(-1),
    "transposed": lambda a: a.T,
    "backwards": lambda a: a[::-1] if a.ndim else a,
    "backwards twice": lambda a: a[::-1, ::-1] if a.ndim == 2 else a,
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2] if a.ndim else a,
    "other order": lambda a: np.asfortranarray(a) if a.flags.c_contiguous else a.copy(order="C"),
    "misaligned": misaligned,
    "odd steps": odd_steps,
    "read-only": read_only,
    "one element": lambda a: repeated(a, a.shape),
    "huge": lambda a: repeated(a, (2**40, 2**18)[: max(1, a.ndim)]),
    "wide": lambda a: repeated(a, (4, 2**57)[-max(1, a.ndim) :]),
    "overflowing": lambda a: repeated(a, (2**30, 2**29)[: max(1, a.ndim)]),
    "float32": lambda a: a.astype(np.float32),
    "float64": lambda a: a.astype(np.float64),
    "float16": lambda a: a.astype(np.float16),
    "integers": lambda a: a.astype(np.int32),
    "complex": lambda a: a.astype(np.complex128),
    "objects": lambda a: a.astype(object),
    "booleans": lambda a: a.astype(bool),
    "text": lambda a: a.astype(str),
    "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "NaN": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a,
    "infinite": lambda a: np.full_like(a, -np.inf) if a.dtype.kind == "f" else a,
    "minus one": lambda a: (0 * a - 1).astype(a.dtype),
    "too large": lambda a: np.full_like(a, limits(a).max),
    "too small": lambda a: np.full_like(a, limits(a).min),
    "list": lambda a: a.tolist(),
    "memory": lambda a: memoryview(np.ascontiguousarray(a)),
    "nothing": lambda a: None,
    "bytes": lambda a: b"12345678",
}
SCALARS = [
    -1, 0, 1, 2, 3, 5, 7, 63, 64, 2**20, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
    -(2**63), -(2**70), 0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 5e-324, True, False, None,
    "2", b"2", [], object, 1j,
]  # fmt: skip

KERNELS = (
    "fwht", "map_rows", "squared_norms", "gram", "moments", "gradient", "slopes", "curved", "srht",
    "kerdock", "kerdock_sketch", "kerdock_distortion", "lengths", "second_moments", "slope_counts",
    "residuals", "terms", "sparse_sketch", "sparse_distortion",
)  # fmt: skip
CALLS = st.tuples(
    st.sampled_from(KERNELS),
    st.one_of(st.integers(1, 40), st.sampled_from([64, 513, 2048])),
    st.one_of(st.integers(1, 9), st.just(130)),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from([0.0, 1.0, math.nan]),
    st.booleans(),
)
SPOILS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from(sorted(SPOIL_ARRAY)),
        st.sampled_from(range(len(SCALARS))),
    ),
    min_size=1,
    max_size=3,
)


def is_array(argument):
    return isinstance(argument, np.ndarray)


def spoil(arguments, spoils):
    """Replace arguments by spoiled ones, each once; two of them may become the same array."""
    spoiled = set()
    for at, how, which in spoils:
        k = at % len(arguments)
        if k in spoiled:
            continue
        spoiled.add(k)
        if is_array(arguments[k]):
            if which == 0:
                arguments[k] = next(
                    a for j, a in enumerate(arguments) if j not in spoiled - {k} and is_array(a)
                )
            else:
                arguments[k] = SPOIL_ARRAY[how](arguments[k])
        else:
            arguments[k] = SCALARS[which]


def run(native, calls, first_seed, last):
    outcomes = Counter()

    @seed(first_seed)
    @settings(
        max_examples=calls,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(CALLS, SPOILS)
    def attack(call, spoils):
        os.pwrite(last, f"{call!r} {spoils!r}".encode().ljust(400), 0)
        arguments, memories = valid_call(*call)
        spoil(arguments, spoils)
        try:
            getattr(native, call[0])(*arguments)
            outcomes["returned"] += 1
        except REFUSALS as error:
            outcomes[type(error).__name__] += 1
        for memory, size in memories:
            assert intact(memory, size), f"{call} {spoils} wrote outside an array"

    attack()
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    native = import_module("fastmix.kernels._native")
    for name in KERNELS:
        for n in (2, 64):  # what is spoiled must be in order first
            getattr(native, name)(*valid_call(name, n, 3, "float64", 1.0, True)[0])
    with tempfile.NamedTemporaryFile(prefix="fastmix-fuzz-", delete=False) as last:
        outcomes = run(native, options.calls, options.seed, last.fileno())
    os.unlink(last.name)
    print(sum(outcomes.values()), "calls:", dict(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
