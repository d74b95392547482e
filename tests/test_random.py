"""Randomness: the bit generator is AES-128, fresh generators never repeat, seeds reproduce."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from randomgen import AESCounter

from fastmix.errors import ReproducibleNoiseWarning
from fastmix.random import is_seeded, public_generator, secret_generator

pytestmark = pytest.mark.real_keys

BOTH = pytest.mark.parametrize("make", [secret_generator, public_generator])


# --- AES ----------------------------------------------------------------------------------------


def test_bit_generator_is_aes_128_of_fips_197():
    """FIPS 197, Appendix C.1: the first block is the encryption of the counter."""
    key = int.from_bytes(bytes(range(16)), "little")
    assert key == 0x0F0E0D0C0B0A09080706050403020100
    plaintext = bytes.fromhex("00112233445566778899aabbccddeeff")
    stream = AESCounter(key=key, counter=int.from_bytes(plaintext, "little"))
    block = stream.random_raw(2).astype("<u8").tobytes()
    assert block.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_counter_mode_moves_one_block_at_a_time():
    """Block i of a stream is block 0 of the stream whose counter starts i higher."""
    key = 0x0123456789ABCDEF0123456789ABCDEF
    stream = AESCounter(key=key, counter=7).random_raw(12)
    for block in range(6):
        alone = AESCounter(key=key, counter=7 + block).random_raw(2)
        np.testing.assert_array_equal(alone, stream[2 * block : 2 * block + 2])


def test_secret_noise_is_drawn_from_aes():
    assert isinstance(secret_generator().bit_generator, AESCounter)


def test_secret_keys_come_from_the_operating_system(monkeypatch):
    asked = []

    def randbits(bits):
        asked.append(bits)
        return 42

    monkeypatch.setattr("secrets.randbits", randbits)
    drawn = secret_generator().bit_generator.random_raw(4)
    np.testing.assert_array_equal(drawn, AESCounter(key=42).random_raw(4))
    assert asked == [128]


# --- never twice --------------------------------------------------------------------------------


def draw(make):
    return make().bit_generator.random_raw(2).tobytes()


def _child(connection, make):
    connection.send([draw(make) for _ in range(5)])
    connection.close()


@BOTH
def test_fresh_generators_never_repeat(make):
    assert len({draw(make) for _ in range(500)}) == 500


@BOTH
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this platform does not fork"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_fresh_generators_never_repeat_after_a_fork(make):
    """Two children of the same parent state, and the parent before and after them."""
    context = multiprocessing.get_context("fork")
    draws = [draw(make) for _ in range(5)]
    for _ in range(2):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=_child, args=(send, make))
        child.start()
        send.close()
        draws += receive.recv()
        child.join(60)
        assert child.exitcode == 0
    draws += [draw(make) for _ in range(5)]
    assert len(set(draws)) == len(draws) == 20


def test_fresh_generators_never_repeat_across_threads():
    draws = []
    threads = [
        threading.Thread(target=lambda: draws.extend(draw(secret_generator) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(draws)) == 200


def test_no_seed_is_hidden_in_the_global_state():
    draws = []
    state = np.random.get_state()  # noqa: NPY002
    try:
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            draws.append(draw(secret_generator))
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert draws[0] != draws[1]


# --- seeds --------------------------------------------------------------------------------------

SEEDS = {
    "int": lambda: 7,
    "large int": lambda: 2**200 + 1,
    "numpy integer": lambda: np.int64(7),
    "RandomState": lambda: np.random.RandomState(7),
    "Generator": lambda: np.random.default_rng(7),
}


@BOTH
@pytest.mark.parametrize("kind", SEEDS)
def test_seeded_kinds_are_reproducible(make, kind):
    first, second = make(SEEDS[kind]()), make(SEEDS[kind]())
    np.testing.assert_array_equal(first.normal(size=20), second.normal(size=20))


@BOTH
def test_seeds_differ(make):
    draws = {make(seed).bytes(16) for seed in range(100)}
    assert len(draws) == 100
    assert make(np.int64(7)).bytes(16) == make(7).bytes(16)


@BOTH
def test_random_state_moves_on(make):
    """As everywhere in scikit-learn, one RandomState gives different draws at each use."""
    state = np.random.RandomState(7)
    assert make(state).bytes(16) != make(state).bytes(16)


@BOTH
def test_generator_is_returned_as_it_is(make):
    rng = np.random.default_rng(3)
    assert make(rng) is rng


@BOTH
@pytest.mark.parametrize("kind", [None, *SEEDS])
def test_global_state_is_untouched(make, kind):
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    before = copy.deepcopy(before)
    make(None if kind is None else SEEDS[kind]()).normal(size=10)
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert pickle.dumps(before) == pickle.dumps(after)


def test_is_seeded():
    assert not is_seeded(None)
    assert all(is_seeded(seed()) for seed in SEEDS.values())
    assert is_seeded(0)


@BOTH
@pytest.mark.parametrize("wrong", [1.5, "7", True, [1, 2], np.array([1]), np.bool_(1), object])
def test_other_kinds_are_refused(make, wrong):
    with pytest.raises(
        TypeError,
        match=r"^random_state must be None, an int, a RandomState or a Generator; got random_state",
    ):
        make(wrong)


# --- distribution -------------------------------------------------------------------------------


def test_secret_noise_has_the_right_distribution():
    """Kolmogorov-Smirnov at a fixed key; false alarms 1e-6, and the key makes it repeatable."""
    from scipy.stats import kstest

    rng = np.random.Generator(AESCounter(key=2026))
    assert kstest(rng.normal(size=20_000), "norm").pvalue > 1e-6
    assert kstest(rng.laplace(size=20_000), "laplace").pvalue > 1e-6
    assert kstest(rng.random(20_000), "uniform").pvalue > 1e-6


# --- the warning --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int", "numpy integer", "RandomState"])
def test_a_seed_for_secret_noise_warns(kind, monkeypatch):
    monkeypatch.setattr("fastmix.random._told", False)
    with pytest.warns(ReproducibleNoiseWarning, match="whoever knows the seed"):
        secret_generator(SEEDS[kind]())


def test_what_does_not_warn(monkeypatch):
    monkeypatch.setattr("fastmix.random._told", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        secret_generator()
        secret_generator(np.random.default_rng(0))  # handed on
        secret_generator(7, warn=False)
        public_generator(7)


def test_the_warning_is_shown_once_a_process():
    """Under Python's own filters, at different places, for all kinds of seeds."""
    program = """
        import numpy as np, fastmix, warnings
        from fastmix.releases import (gauss_mix,)
        warnings.simplefilter("ignore", fastmix.LowAccuracyWarning)  # 20 rows
        X, y = np.linspace(-1, 1, 60).reshape(20, 3), np.linspace(-1, 1, 20)
        bounds = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
        fastmix.IHS(random_state=0, **bounds).fit(X, y)
        fastmix.IHM(**bounds).fit(X, y)
        print("before", flush=True)
        fastmix.IHM(random_state=0, **bounds).fit(X, y)
        fastmix.AdaSSP(random_state=np.random.default_rng(0), **bounds).fit(X, y)
        fastmix.FastIHM(random_state=np.random.RandomState(0), **bounds).fit(X, y)
        gauss_mix(X, k=3, gamma=4.0, tau=1.0, omega=2.0, rng=5)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    before, after = done.stdout.split("before\n")
    assert before == ""
    assert after.count("ReproducibleNoiseWarning: the noise is seeded") == 1
    assert after.startswith("<string>:10: "), "the warning points at the fit"
