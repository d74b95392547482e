"""Data larger than memory: time and memory of a fit, against reading the files as often.

    python benchmarks/scale.py files --rows 40_000_000 --columns 20 --folder scale
    python benchmarks/scale.py growth --folder scale
    python benchmarks/scale.py dask

``files`` writes the Parquet files when they are not there, and fits them, each method in a process
of its own; ``growth`` fits more and more rows of them; ``dask`` compares a cluster of two
processes with arrays in memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastmix
from fastmix.data.arrow import file_chunks
from fastmix.data.chunks import Chunks, read_ahead
from fastmix.errors import ReproducibleNoiseWarning

METHODS = {"IHM": fastmix.IHM, "FastIHM": fastmix.FastIHM, "AdaSSP": fastmix.AdaSSP}
ROW_GROUP = 1 << 18
FILE_ROWS = 1 << 22


def write(folder: Path, rows: int, columns: int) -> None:
    """Write files of correlated columns and a linear target, a row group at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{j}" for j in range(columns)]
    rng = np.random.default_rng(0)
    mixing = np.linalg.qr(rng.standard_normal((columns, columns)))[0] * 0.9 ** np.arange(columns)
    theta = rng.uniform(-0.3, 0.3, columns)
    for start in range(0, rows, FILE_ROWS):
        path = folder / f"part-{start // FILE_ROWS:03d}.parquet"
        with pq.ParquetWriter(path, pa.schema([(n, pa.float64()) for n in (*names, "y")])) as file:
            for first in range(start, min(rows, start + FILE_ROWS), ROW_GROUP):
                n = min(ROW_GROUP, rows - first)
                X = rng.uniform(-1.0, 1.0, (n, columns)) @ mixing
                y = X @ theta + 0.1 * rng.standard_normal(n)
                file.write_table(pa.table([*X.T, y], names=[*names, "y"]), row_group_size=n)


def read(table: Chunks) -> float:
    """Return the seconds that one reading of all records takes."""
    start = time.perf_counter()
    for _ in read_ahead(records for chunk in table.chunks for records in chunk.read()):
        pass
    return time.perf_counter() - start


def fit(name: str, table: Chunks) -> dict[str, object]:
    """Fit a table in chunks; return seconds, passes and the most memory that was resident."""
    passes: list[str] = []

    def report(name: str, part: float) -> None:
        if part == 1.0:
            passes.append(name)

    model = METHODS[name](epsilon=1.0, bounds_X=(-2.0, 2.0), bounds_y=(-3.0, 3.0))
    start = time.perf_counter()
    model.fit_chunks(table, report=report)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024
    return {"method": name, "seconds": seconds, "passes": len(passes), "resident_MB": peak}


def files(args: argparse.Namespace) -> None:
    if not args.folder.exists():  # written once, then kept
        write(args.folder, args.rows, args.columns)
    for name in METHODS if args.method is None else [args.method]:
        if args.method is None:
            command = [sys.executable, __file__, *sys.argv[1:], "--method", name]
            subprocess.run(command, check=True)
            continue
        table = file_chunks(args.folder, "y")
        before = read(table)
        result = fit(name, table)
        reading = (before + read(table)) / 2.0
        ratio = result["seconds"] / (reading * result["passes"])
        print(json.dumps({"rows": table.n, **result, "read": reading, "over_reading": ratio}))


def growth(args: argparse.Namespace) -> None:
    whole = file_chunks(args.folder, "y")
    for name in METHODS:
        fit(name, Chunks(whole.chunks[:1], whole.d, whole.names))  # calibrates
        best: dict[int, float] = {}
        for _ in range(args.repeats):
            for bits in (18, 20, 22):
                table = Chunks(whole.chunks[: (1 << bits) // ROW_GROUP], whole.d, whole.names)
                seconds = float(fit(name, table)["seconds"])
                best[bits] = min(best.get(bits, np.inf), seconds)
        print(
            name, {f"2^{bits}": f"{s / (1 << bits) * 1e9:.0f} ns a row" for bits, s in best.items()}
        )


def dask(args: argparse.Namespace) -> None:
    from dask import array
    from distributed import Client, LocalCluster, wait

    from fastmix.datasets import make_correlated

    X, y = make_correlated(1 << 20, 32, random_state=0)
    bounds = {"bounds_X": (-6.0, 6.0), "bounds_y": (-10.0, 10.0), "random_state": 0}
    rows = (args.block,) * (len(X) // args.block)
    start = time.perf_counter()
    with (
        TemporaryDirectory() as folder,
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        started = time.perf_counter() - start
        lazy = []
        for name, data in (("X", X), ("y", y)):
            np.save(f"{folder}/{name}.npy", data)
            chunks = (rows, *((size,) for size in data.shape[1:]))
            load = partial(load_block, f"{folder}/{name}.npy")
            lazy.append(array.map_blocks(load, chunks=chunks, dtype=data.dtype).persist())
        wait(lazy)
        for name, method in METHODS.items():
            model = method(epsilon=1.0, **bounds)
            times: dict[str, list[float]] = {"memory": [], "cluster": []}
            coefficients = {}
            for _ in range(args.repeats + 1):
                for where, data in (("memory", (X, y)), ("cluster", lazy)):
                    start = time.perf_counter()
                    coefficients[where] = model.fit(*data).coef_
                    times[where].append(time.perf_counter() - start)
            best = {where: min(taken[1:]) for where, taken in times.items()}
            apart = np.abs(coefficients["memory"] - coefficients["cluster"]).max()
            size = np.abs(coefficients["memory"]).max()
            print(
                f"{name}: memory {best['memory']:.3f} s, cluster {best['cluster']:.3f} s, "
                f"{best['cluster'] / best['memory']:.2f} times; first fits "
                f"{times['memory'][0]:.2f} s and {times['cluster'][0]:.2f} s, start of the cluster "
                f"{started:.1f} s; coefficients {apart / size:.1e} apart"
            )


def load_block(path: str, block_info: dict) -> np.ndarray:
    """Return some rows of a file: what a worker does to get its block."""
    start, stop = block_info[None]["array-location"][0]
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("files", "growth", "dask"))
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--method", choices=tuple(METHODS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--block", type=int, default=1 << 18, help="rows of a block on the cluster")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    {"files": files, "growth": growth, "dask": dask}[args.what](args)


if __name__ == "__main__":
    main()
