"""Features and a pair loss to the RankSVM: Newton's method with a line search.

Solves the paper's equation (eq:ranksvm_standard) over ``w`` in ``f = Z w``::

    F(w) = |w|^2 / 2 + C * loss(Z w)

where the rows of ``Z`` are kernel features (`kernels.KernelMap`). The solver needs a loss and products
with ``Z``, never the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg

from rankad._base.arrays import Floats, Singles
from rankad._base.scratch import Scratch
from rankad._loops.cache import compiled

if TYPE_CHECKING:
    from rankad.stages.pairloss import PairLoss, PairLossAt

# How closely conjugate gradients solve the Newton system: usually, and before they may end the search.
_ACCURACIES = (1e-2, 1e-8)
# The line search ends when the slope has fallen to this share of what it was.
_SLOPE_LEFT = 0.1
_MAX_LINE_STEPS = 30
# Copying some rows takes less time than multiplying all of them up to this share.
_FEW = 0.75
# Rows whose features are rounded together: what is written of them stays in the cache.
_TOGETHER = 16
# Smaller features are zero in single precision: their products would be subnormal numbers, which are slow.
_SINGLE_ZERO = np.float32(1e-12)


class SolverLimits(NamedTuple):
    """Where the solver changes its method; solutions differ within the tolerance only."""

    # Up to this many features the Newton system is factorized; above it, conjugate gradients are tried first.
    dense: int = 1_000
    # Steps of conjugate gradients before the system is factorized after all.
    cg_steps: int = 50
    # With a curvature above this in any feature, the Hessian is formed in double precision: single precision
    # may lose the identity that is added to it.
    single: float = 1e6
    # The last Hessian is used once more where Newton's decrement was below the first share of the length of
    # w, and is below the second by that Hessian.
    reuse: tuple[float, float] = (0.05, 3e-3)


_DEFAULT_LIMITS = SolverLimits()


class RankSVMSolution(NamedTuple):
    """The minimizer and how the solver got there."""

    weights: Floats  # the minimizer w, of shape (s,)
    scores: Floats  # Z w, the scores of the training rows
    objective: float  # F(w)
    loss: float  # the loss part, without C
    # Newton's decrement at w, or a bound on it: F(w) - min F is about its square over two.
    decrement: float
    n_iter: int  # Newton steps taken
    converged: bool  # whether the stopping rule held (`solve_path`), or rounding left nothing to gain


def solve_path(
    features: Floats,
    loss: PairLoss,
    Cs: Iterable[float],
    scratch: Scratch | None = None,
    *,
    start: Floats | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    limits: SolverLimits = _DEFAULT_LIMITS,
) -> Iterator[RankSVMSolution]:
    """Yield the minimizer for each C in turn, each started from the one before (ascending C is best).

    The Hessian is at least the identity, so Newton's decrement ``lambda`` bounds the length of the Newton
    step. The solver stops when ``lambda <= tol * |w|``: a rule that does not depend on the scale of ``C`` or
    on the number of pairs. (A tolerance relative to the first gradient stops too early when ``C`` is large.)

    `features` are ``Z``, and a C is the weight of one pair, as in the paper. The first search starts from
    `start`, by default from zero. After `max_iter` Newton steps a search ends without having converged.
    """
    newton = _Newton(features, limits, scratch)
    for C in Cs:
        solution = _minimize(newton, loss, C, start, tol, max_iter)
        start = solution.weights
        yield solution


def _minimize(
    newton: _Newton, loss: PairLoss, C: float, start: Floats | None, tol: float, max_iter: int
) -> RankSVMSolution:
    if not (math.isfinite(C) and C > 0):
        raise ValueError(f"C must be finite and > 0, got {C!r}.")
    newton.forget()
    Z = newton.Z
    w = np.zeros(Z.shape[1]) if start is None else np.array(start, dtype=np.float64)
    f = Z @ w
    at = loss.at(f)
    objective = 0.5 * float(w @ w) + C * at.value
    converged, n_iter = False, 0
    while True:
        gradient = w + C * (Z.T @ at.gradient)
        # The Hessian is at least the identity, so the decrement is at most the gradient's length.
        decrement, length = float(np.linalg.norm(gradient)), float(np.linalg.norm(w))
        if decrement <= tol * length:
            converged = True
            break
        step, fresh = newton.step(at, C, gradient, length, tol)
        if fresh:
            decrement = _decrement(gradient, step)
        if fresh and decrement <= tol * length:
            converged = True
            break
        if n_iter == max_iter:
            break
        moved = _line_search(w, f, step, Z @ step, objective, float(gradient @ step), loss, C)
        if moved is None and not fresh:
            continue
        if moved is None:
            # No step lowers F any more: what is left is rounding, unless the decrement says otherwise.
            converged = decrement**2 <= 1e-9 * objective
            break
        w, f, at, objective = moved
        n_iter += 1
    return RankSVMSolution(w, f, objective, at.value, decrement, n_iter, converged)


class _Newton:
    """Newton steps for some features, and what was learned about how best to find them.

    Conjugate gradients are given up once they take long, and single precision once it is too coarse. (A step
    needs no more: its result, and when to stop, are computed in double precision.) Neither is tried again:
    along ascending C it gets harder.
    """

    def __init__(self, features: Floats, limits: SolverLimits, scratch: Scratch | None = None) -> None:
        scratch = scratch or Scratch()
        self.Z, self._limits = features, limits
        self._single = scratch.empty("single", features.shape, np.float32)
        self._product = scratch.empty("product", features.shape, np.float32)
        _round(np.ascontiguousarray(features.T), self._single)
        self._is_large = features.shape[1] > limits.dense
        self._conjugates, self._coarse = self._is_large, True
        self.forget()

    def forget(self) -> None:
        """Forget the last Hessian, for another C or another start."""
        self._last: Any = None
        self._decrement = math.inf

    def step(
        self, at: PairLossAt, C: float, gradient: Floats, length: float, tol: float
    ) -> tuple[Floats, bool]:
        """Return the step from w, whose length is given, and whether it is by the Hessian at w.

        A step by an earlier Hessian may go on, but may not end the search.
        """
        again = self._step_again(gradient, length)
        if again is not None:
            return again, False
        for accuracy in _ACCURACIES:
            step = self._step(at, C, gradient, accuracy)
            self._decrement = _decrement(gradient, step)
            # A loose solution may miss a soft direction: only a tight one may end the search.
            if not self._is_large or self._decrement > tol * length:
                break
        return step, True

    def _step_again(self, gradient: Floats, length: float) -> Floats | None:
        """Solve by the last Hessian, once, near the end; None elsewhere.

        There hardly any pair becomes active or inactive, and a new Hessian takes longer than one more step.
        (Not where curvatures need double precision: there every pair counts.)
        """
        last, self._last = self._last, None
        before, now = self._limits.reuse
        if last is None or self._decrement > before * length or not self._coarse:
            return None
        step = _solve_factored(last, gradient)
        return step if _decrement(gradient, step) <= now * length else None

    def _step(self, at: PairLossAt, C: float, gradient: Floats, accuracy: float) -> Floats:
        """Solve ``H step = -gradient``."""
        if self._conjugates:
            step = _conjugate_gradients(self.Z, at, C, gradient, accuracy, self._limits.cg_steps)
            if step is not None:
                return step
            self._conjugates = False
        self._last = self._factor(at, C)
        return _solve_factored(self._last, gradient)

    def _factor(self, at: PairLossAt, C: float) -> Any:
        if self._coarse:
            hessian = _hessian(self._single, at, C, self._product)
            if hessian.diagonal().max() <= self._limits.single:
                with suppress(linalg.LinAlgError):
                    return linalg.cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
            self._coarse = False
        return linalg.cho_factor(_hessian(self.Z, at, C), lower=True, overwrite_a=True, check_finite=False)


def _solve_factored(factor: Any, gradient: Floats) -> Floats:
    step = linalg.cho_solve(factor, gradient.astype(factor[0].dtype), check_finite=False)
    return np.asarray(-step, dtype=np.float64)


def _decrement(gradient: Floats, step: Floats) -> float:
    """Return Newton's decrement."""
    return math.sqrt(max(0.0, -float(gradient @ step)))


def _hessian(Z: Floats | Singles, at: PairLossAt, C: float, out: Singles | None = None) -> Floats | Singles:
    """Return the lower triangle of ``I + C Z' loss'' Z``; the upper one is undefined."""
    product = at.hessian_product(Z, out)
    # Rows without active pairs do not contribute; where C is large, those are most.
    active = np.flatnonzero(_any_nonzero(product))
    few = active.size < _FEW * len(Z)
    hessian = _lower_product(Z[active], product[active]) if few else _lower_product(Z, product)
    hessian *= C
    hessian.flat[:: Z.shape[1] + 1] += 1.0
    return hessian


@compiled
def _round(columns, out):  # type: ignore[no-untyped-def]
    """Fill in features row by row in single precision, the smallest as zero."""
    s, n = columns.shape
    for begin in range(0, n, _TOGETHER):
        for column in range(s):
            for row in range(begin, min(begin + _TOGETHER, n)):
                value = np.float32(columns[column, row])
                out[row, column] = np.float32(0.0) if abs(value) < _SINGLE_ZERO else value


@compiled
def _any_nonzero(product):  # type: ignore[no-untyped-def]
    """Return ``product.any(axis=1)``, without reading on after the first number that is not zero."""
    nonzero = np.zeros(product.shape[0], dtype=np.bool_)
    for row in range(product.shape[0]):
        for column in range(product.shape[1]):
            if product[row, column] != 0:
                nonzero[row] = True
                break
    return nonzero


def _lower_product(left: Floats | Singles, right: Floats | Singles) -> Floats | Singles:
    """Return the lower triangle of the symmetric ``left' right``; the upper one is undefined."""
    s = left.shape[1]
    out = np.zeros((s, s), left.dtype)
    width = max(1, -(-s // 4))
    for begin in range(0, s, width):
        out[begin:, begin : begin + width] = left[:, begin:].T @ right[:, begin : begin + width]
    return out


def _conjugate_gradients(
    Z: Floats, at: PairLossAt, C: float, gradient: Floats, accuracy: float, max_steps: int
) -> Floats | None:
    """Solve until the residual is `accuracy` times the gradient's length; None after `max_steps` steps."""
    step = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    rho = float(residual @ residual)
    target = accuracy * math.sqrt(rho)
    for _ in range(max_steps):
        if math.sqrt(rho) <= target:
            return step
        product = direction + C * (Z.T @ at.hessian_product(Z @ direction))
        length = rho / float(direction @ product)
        step += length * direction
        residual -= length * product
        rho, previous = float(residual @ residual), rho
        direction = residual + (rho / previous) * direction
    return None


def _line_search(
    w: Floats,
    f: Floats,
    step: Floats,
    f_step: Floats,
    objective: float,
    slope: float,
    loss: PairLoss,
    C: float,
) -> tuple[Floats, Floats, PairLossAt, float] | None:
    """Go along the step to where the slope has all but vanished; None if nothing is gained.

    The objective is convex along the step, so its slope rises from a negative value: bracket its zero, then
    alternate between false position and bisection. Most often the full step is accepted at once.
    """
    low, low_slope, high, high_slope = 0.0, slope, math.inf, math.nan
    length = 1.0
    best: tuple[Floats, Floats, PairLossAt, float] | None = None
    for trial in range(_MAX_LINE_STEPS):
        w_new, f_new = w + length * step, f + length * f_step
        at = loss.at(f_new)
        value = 0.5 * float(w_new @ w_new) + C * at.value
        if value < objective and (best is None or value < best[3]):
            best = (w_new, f_new, at, value)
        here = float(w_new @ step) + C * float(at.gradient @ f_step)
        if abs(here) <= -_SLOPE_LEFT * slope and best is not None:
            break
        if here < 0:
            low, low_slope = length, here
        else:
            high, high_slope = length, here
        if math.isinf(high):
            length *= 2.0
        elif trial % 2:
            length = 0.5 * (low + high)
        else:
            length = low + (high - low) * low_slope / (low_slope - high_slope)
    return best
