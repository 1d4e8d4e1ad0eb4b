"""The scoring kernel beside what the core can do, and beside the same sum in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from threadpoolctl import threadpool_limits

from benchmarks.measure import seconds
from benchmarks.process import run_job
from benchmarks.settings import Bench
from benchmarks.text import amount
from rankad._base.arrays import Floats
from rankad._loops.kernel import NEAREST
from rankad._loops.vectors import POLYNOMIAL, Vectors, lanes
from rankad.experiments.cells import Cell, CellStore, run_cells
from rankad.experiments.results import Table
from rankad.scorers.kernel import KernelScorer

__all__ = ["blocked_numpy", "flops", "instructions", "measure", "run", "table"]

# What the kernel computes in for the models that fits make, mostly; and what it can compute in.
PRECISION = np.float32
_BLOCK = 1_000
_REPEATS = 7
# What a second core adds changes from second to second where others use it too: so many rounds more.
_PAIRED = 60
# Pairs of a row and a landmark in one timed call; rows enough for both threads to have many blocks.
_PAIRS, _LEAST_ROWS = 40_000_000, 40_960
# Enough chains for none to wait for itself, and few enough for registers.
_CHAINS = 16
_PASSES = 3_000_000
_PRODUCT = 1_000
# A ceiling is the best of this many measurements.
_TRIES = 5
# Matrix products, and their size, that show what a second core adds.
_PRODUCTS, _SMALL_PRODUCT = 20, 500


def _horner_steps() -> int:
    return len(POLYNOMIAL[numba.from_dtype(np.dtype(PRECISION))]) - 1


def flops(d: int) -> int:
    """Count the floating-point operations of the kernel for one row and one landmark.

    A fused multiply-add is two. Squared distance: a subtraction and a fused multiply-add a column. Power:
    three subtractions that split the exponent, and the polynomial. Weight: one fused multiply-add.
    """
    return 3 * d + (3 + 2 * _horner_steps()) + 2


def instructions(d: int) -> int:
    """Count the vector instructions that do these operations, each as costly as a fused multiply-add.

    Distance: a subtraction and a fused multiply-add a column. Power: a minimum, three subtractions, the
    polynomial, a shift and an addition of whole numbers. Weight: one. Nearest landmarks: a minimum each, and
    a maximum for what is passed on to the next.
    """
    return 2 * d + (1 + 3 + _horner_steps() + 2) + 1 + (2 * NEAREST - 1)


def blocked_numpy(
    rows: Floats, landmarks: Floats, coefficients: Floats, widths: Floats, dtype: Any = np.float64
) -> Floats:
    """Return the kernel sums as written in NumPy: a matrix product, exp, a product, block by block."""
    z = (landmarks / widths).astype(dtype)
    coefficients = coefficients.astype(dtype)
    lengths = np.einsum("ij,ij->i", z, z)
    scores = np.empty(len(rows))
    for begin in range(0, len(rows), _BLOCK):
        x = (rows[begin : begin + _BLOCK] / widths).astype(dtype)
        squared = x @ z.T
        squared *= -2.0
        squared += np.einsum("ij,ij->i", x, x)[:, None]
        squared += lengths
        np.negative(squared, out=squared)
        np.exp(squared, out=squared)
        scores[begin : begin + _BLOCK] = squared @ coefficients
    return scores


@intrinsic
def _fuse(typing, times, out):  # type: ignore[no-untyped-def]
    """Make `_CHAINS` chains of fused multiply-adds, each as long as it is told, in the widest vectors."""

    def write(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        vectors = Vectors(builder, out.dtype)
        factor, term = vectors.constant(0.999), vectors.constant(0.001)
        chains = [cgutils.alloca_once_value(builder, vectors.constant(float(i))) for i in range(_CHAINS)]
        with cgutils.for_range(builder, arguments[0]):
            for chain in chains:
                builder.store(vectors.fused(builder.load(chain), factor, term), chain)
        found = context.make_array(out)(context, builder, arguments[1])
        for i, chain in enumerate(chains):
            vectors.store(builder.load(chain), found.data, ir.IntType(64)(i * vectors.width))
        return context.get_dummy_value()

    return types.void(types.intp, out), write


@numba.njit(nogil=True)
def _chains(times, out):  # type: ignore[no-untyped-def]
    _fuse(times, out)


def chain_rate() -> float:
    """Return the operations per second of independent chains of fused multiply-adds, on one core."""
    out = np.empty(_CHAINS * lanes(PRECISION), dtype=PRECISION)
    _chains(10, out)
    best = min(seconds(lambda: _chains(_PASSES, out)) for _ in range(_TRIES))
    return 2.0 * out.size * _PASSES / best


def product_rate() -> float:
    """Return the operations per second of a matrix product, on one core: no compiler of ours in the way."""
    a = np.random.default_rng(0).random((_PRODUCT, _PRODUCT)).astype(PRECISION)
    out = np.empty_like(a)
    with threadpool_limits(limits=1):
        np.matmul(a, a, out=out)
        best = min(seconds(lambda: np.matmul(a, a, out=out)) for _ in range(_TRIES))
    return 2.0 * _PRODUCT**3 / best


def _products(times: int) -> None:
    """Multiply matrices on the thread that asks for it."""
    a = np.ones((_SMALL_PRODUCT, _SMALL_PRODUCT), dtype=PRECISION)
    out = np.empty_like(a)
    for _ in range(times):
        np.matmul(a, a, out=out)


def _products_on_two(times: int) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(_products, [times // 2] * 2))


def measure(d: int, s: int) -> dict[str, Any]:
    """Time kernel, NumPy and two cores in turns, and the core before and after."""
    rng = np.random.default_rng(0)
    n = max(_LEAST_ROWS, _PAIRS // s)
    rows, landmarks = rng.standard_normal((n, d)), rng.standard_normal((s, d))
    coefficients, widths = rng.standard_normal(s), np.full(d, np.sqrt(2.0 * d))
    double = KernelScorer(landmarks, coefficients, widths)
    single = replace(double, single=True)
    ceilings = [(chain_rate(), product_rate())]
    calls: dict[str, Callable[[], Any]] = {
        "one": lambda: single.score(rows, n_jobs=1),
        "two": lambda: single.score(rows, n_jobs=2),
        "numpy": lambda: blocked_numpy(rows, landmarks, coefficients, widths),
        "double": lambda: double.score(rows, n_jobs=1),
        "numpy_single": lambda: blocked_numpy(rows, landmarks, coefficients, widths, PRECISION),
        "product": lambda: _products(_PRODUCTS),
        "two_products": lambda: _products_on_two(_PRODUCTS),
    }
    with threadpool_limits(limits=1):
        # This is the warm-up too.
        answers = {name: call() for name, call in calls.items()}
        off = {name: float(np.abs(answers[name] - answers["numpy"]).max()) for name in ("one", "double")}
        if off["one"] > single.rounding or off["double"] > 1e-9 * np.abs(coefficients).sum():
            raise RuntimeError(f"kernel and NumPy differ, by {off['one']:.1g} and {off['double']:.1g}")
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(_REPEATS):
            for name, call in calls.items():
                times[name].append(seconds(call))
        for _ in range(_PAIRED):
            for name in ("one", "two", "product", "two_products"):
                times[name].append(seconds(calls[name]))
    ceilings.append((chain_rate(), product_rate()))
    chain, product = np.max(ceilings, axis=0)
    middle = {name: median(several[:_REPEATS]) for name, several in times.items()}
    pairs = {name: n * s / middle[name] for name in ("one", "two", "numpy", "double", "numpy_single")}
    return {
        "rows": n,
        "pairs_per_second": pairs,
        "ceiling_chain": float(chain),
        "ceiling_product": float(product),
        "ceiling": float(max(chain, product)),
        "flops": flops(d) * pairs["one"],
        "share": flops(d) * pairs["one"] / float(max(chain, product)),
        # At the ceiling every instruction is a fused multiply-add, which is two operations.
        "issue_share": 2 * instructions(d) * pairs["one"] / float(max(chain, product)),
        "beside_numpy": pairs["one"] / pairs["numpy"],
        "double_beside_numpy": pairs["double"] / pairs["numpy"],
        "beside_numpy_single": pairs["one"] / pairs["numpy_single"],
        "off": off["one"] / single.rounding,
        # Measured right after one another; a machine's speed may change between rounds.
        "scaling": median(np.divide(times["one"], times["two"])),
        "product_scaling": median(np.divide(times["product"], times["two_products"])),
    }


def run(bench: Bench, store: CellStore) -> list[dict[str, Any]]:
    """Measure every d and s, each in a process with two cores."""
    keys = [{"d": d, "s": s} for d in bench.sizes.columns for s in bench.sizes.landmark_counts]
    cells = [
        Cell(
            {"experiment": "roofline", **key}, partial(run_job, "benchmarks.roofline:measure", key, 2, 300.0)
        )
        for key in keys
    ]
    found = run_cells(cells, store, label="bench: roofline")
    return [{**key, **result} for key, result in zip(keys, found, strict=True)]


def table(records: Sequence[dict[str, Any]]) -> Table:
    """Show rates and ceilings."""
    columns = [
        "d",
        "s",
        "kernel, million pairs/s",
        "Gflop/s",
        "ceiling, Gflop/s",
        "of the ceiling",
        "of issue slots",
        "NumPy, million pairs/s",
        "kernel / NumPy",
        "float64 kernel / NumPy",
        "kernel / float32 NumPy",
        "two cores / one",
        "matrix product, two cores / one",
    ]
    rows = []
    for record in records:
        head = [str(record["d"]), amount(record["s"])]
        if "missing" in record:
            rows.append(head + [str(record["missing"])] * (len(columns) - 2))
            continue
        pairs = record["pairs_per_second"]
        rows.append(
            [
                *head,
                f"{pairs['one'] / 1e6:.0f}",
                f"{record['flops'] / 1e9:.1f}",
                f"{record['ceiling'] / 1e9:.1f}",
                f"{record['share']:.0%}",
                f"{record['issue_share']:.0%}",
                f"{pairs['numpy'] / 1e6:.0f}",
                f"{record['beside_numpy']:.1f}",
                f"{record['double_beside_numpy']:.1f}",
                f"{record['beside_numpy_single']:.1f}",
                f"{record['scaling']:.2f}",
                f"{record['product_scaling']:.2f}",
            ]
        )
    off = max((record["off"] for record in records if "off" in record), default=0.0)
    notes = [
        f"One core, {np.dtype(PRECISION).name}, in which fitted models score. A pair is a row and a "
        f"landmark: {flops(1) - 3} + 3 d floating-point operations in the kernel, far field included. All "
        f"take turns; medians of {_REPEATS} calls, of {_REPEATS + _PAIRED} where two cores are held against "
        f"one. Scores were off by at most {off:.1%} of the bound on their rounding.",
        "Ceiling: the faster of independent chains of fused multiply-adds in registers and NumPy's product "
        f"of matrices, {_PRODUCT:,} by {_PRODUCT:,}, on the same core before and after; the JSON has both.",
        "Of issue slots: a subtraction, a shift or a comparison takes a slot in which the ceiling does two "
        "operations; this counts instructions instead of operations.",
        f"NumPy: |x|² + |z|² − 2 x·z by a matrix product, exp, a matrix-vector product, blocks of {_BLOCK:,} "
        "rows, one BLAS thread; without the far field. In float64 where nothing else is said.",
        "Two cores: what a second core adds is up to the machine too. Two matrix products at a time, one a "
        "core, beside one after the other, say how much this one had to give while the kernel was measured.",
    ]
    return Table("roofline", "Roofline of the scoring kernel", columns, rows, notes)
