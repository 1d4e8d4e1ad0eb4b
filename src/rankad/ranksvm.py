"""Features and a pair loss to the RankSVM: Newton's method with a line search.

Solves the paper's equation (eq:ranksvm_standard) over ``w`` in ``f = Z w``::

    F(w) = |w|^2 / 2 + C * loss(Z w)

where the rows of ``Z`` are kernel features (`rankad.kernels.KernelMap`). The solver sees a loss and products
with ``Z``, never the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from scipy import linalg

from rankad._arrays import Floats, Singles

__all__ = ["RankSVMSolution", "solve_path", "solve_ranksvm"]

# Up to this many features the Newton system is formed and factorized; above it, conjugate gradients go first.
DENSE_LIMIT = 1_000
# How closely conjugate gradients solve the Newton system: as a rule, and before they may say it is the end.
_ACCURACIES = (1e-2, 1e-8)
_MAX_CG_STEPS = 50
# The line search ends when the slope has fallen to this share of what it was.
_SLOPE_LEFT = 0.1
_MAX_LINE_STEPS = 30
# With a curvature above this in any feature, single precision may lose the identity that is added to it.
_SINGLE_LIMIT = 1e6
# Features below this are nothing beside those of order one, but their products would be subnormal, and slow.
_SINGLE_ZERO = np.float32(1e-12)


class LossAt(Protocol):
    """What the solver needs of a loss at one point."""

    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> Floats: ...
    def hessian_product(self, vectors: Any) -> Any: ...


class Loss(Protocol):
    """A convex loss of scores."""

    def at(self, scores: Floats, /) -> LossAt: ...


class RankSVMSolution(NamedTuple):
    """The minimizer and how the solver got there.

    Attributes
    ----------
    weights : ndarray of shape (s,)
        The minimizer ``w``.
    scores : ndarray of shape (n,)
        ``Z w``, the scores of the training rows.
    objective : float
        ``F(w)``.
    loss : float
        The loss part, without ``C``.
    decrement : float
        Newton's decrement at ``w``, or a bound on it: ``F(w) - min F`` is about its square over two.
    n_iter : int
        Newton steps taken.
    converged : bool
        Whether the stopping rule held (`solve_ranksvm`), or rounding left nothing to gain.
    """

    weights: Floats
    scores: Floats
    objective: float
    loss: float
    decrement: float
    n_iter: int
    converged: bool


def solve_ranksvm(
    features: Floats,
    loss: Loss,
    C: float,
    *,
    start: Floats | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    _newton: _Newton | None = None,
) -> RankSVMSolution:
    """Minimize ``|w|^2 / 2 + C * loss(Z w)``.

    The Hessian is at least the identity, so Newton's decrement ``lambda`` bounds the length of the Newton
    step. The solver stops when ``lambda <= tol * |w|``: a rule free of the scale of ``C`` and of the number
    of pairs. (A tolerance relative to the first gradient stops too early when ``C`` is large.)

    Parameters
    ----------
    features : ndarray of shape (n, s)
        ``Z``.
    loss : object with ``at(scores)``
        Such as `rankad.pairloss.PairLoss`.
    C : float
        The weight of one pair, as in the paper.
    start : ndarray of shape (s,), optional
        Where to start, such as the solution at a smaller C; zero otherwise.
    tol : float
        See above.
    max_iter : int
        Newton steps at most; `RankSVMSolution.converged` says whether they sufficed.
    """
    if not (math.isfinite(C) and C > 0):
        raise ValueError(f"C must be finite and > 0, got {C!r}.")
    newton = _newton or _Newton(features)
    Z = newton.Z
    w = np.zeros(Z.shape[1]) if start is None else np.array(start, dtype=np.float64)
    f = Z @ w
    at = loss.at(f)
    objective = 0.5 * float(w @ w) + C * at.value
    decrement = math.inf
    converged = False
    n_iter = 0
    while True:
        gradient = w + C * (Z.T @ at.gradient)
        # The Hessian is at least the identity, so the decrement is at most the gradient's length.
        decrement = float(np.linalg.norm(gradient))
        if decrement <= tol * float(np.linalg.norm(w)):
            converged = True
            break
        for accuracy in _ACCURACIES:
            step = newton.step(at, C, gradient, accuracy)
            slope = float(gradient @ step)
            decrement = math.sqrt(max(0.0, -slope))
            # A loose solution may miss a soft direction: only a tight one may end the search.
            if Z.shape[1] <= DENSE_LIMIT or decrement > tol * float(np.linalg.norm(w)):
                break
        if decrement <= tol * float(np.linalg.norm(w)):
            converged = True
            break
        if n_iter == max_iter:
            break
        moved = _line_search(w, f, step, Z @ step, objective, slope, loss, C)
        if moved is None:
            # No step lowers F any more: what is left is rounding, unless the decrement says otherwise.
            converged = decrement**2 <= 1e-9 * objective
            break
        w, f, at, objective = moved
        n_iter += 1
    return RankSVMSolution(w, f, objective, at.value, decrement, n_iter, converged)


def solve_path(
    features: Floats, loss: Loss, Cs: Iterable[float], **options: float | int
) -> Iterator[RankSVMSolution]:
    """Yield the solution for each C in turn, each started from the one before (ascending C is best)."""
    start: Floats | None = None
    newton = _Newton(features)
    for C in Cs:
        solution = solve_ranksvm(features, loss, C, start=start, _newton=newton, **options)  # type: ignore[arg-type]
        start = solution.weights
        yield solution


class _Newton:
    """Newton steps for some features, and what was learned about how best to find them.

    Where H is large, conjugate gradients go first, until they take long. H is formed and factorized in single
    precision, until that is too coarse. (A step needs no more: what it leads to is measured in double
    precision, and so is when to stop.) Neither is tried again: along ascending C it gets harder.
    """

    def __init__(self, features: Floats) -> None:
        self.Z = np.ascontiguousarray(features)
        self._single = np.empty(self.Z.shape, dtype=np.float32)
        _round(self.Z, self._single)
        self._conjugates = self.Z.shape[1] > DENSE_LIMIT
        self._coarse = True

    def step(self, at: LossAt, C: float, gradient: Floats, accuracy: float) -> Floats:
        """Solve ``H step = -gradient``."""
        if self._conjugates:
            step = _conjugate_gradients(self.Z, at, C, gradient, accuracy)
            if step is not None:
                return step
            self._conjugates = False
        factor = self._factor(at, C)
        step = linalg.cho_solve(factor, gradient.astype(factor[0].dtype), check_finite=False)
        return np.asarray(-step, dtype=np.float64)

    def _factor(self, at: LossAt, C: float) -> Any:
        if self._coarse:
            hessian = _hessian(self._single, at, C)
            if hessian.diagonal().max() <= _SINGLE_LIMIT:
                with suppress(linalg.LinAlgError):
                    return linalg.cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
            self._coarse = False
        return linalg.cho_factor(_hessian(self.Z, at, C), lower=True, overwrite_a=True, check_finite=False)


def _hessian(Z: Floats | Singles, at: LossAt, C: float) -> Floats | Singles:
    """Return the lower triangle of ``I + C Z' loss'' Z``; what is above it means nothing."""
    product = at.hessian_product(Z)
    # Rows whose pairs are all in order have no part in the Hessian; where C is large, those are most.
    active = np.flatnonzero(_any_in(product))
    rows = Z if active.size == len(Z) else Z[active]
    hessian = _lower_product(rows, product if active.size == len(Z) else product[active])
    hessian *= C
    hessian.flat[:: Z.shape[1] + 1] += 1.0
    return hessian


@numba.njit(cache=True, nogil=True)
def _round(features, out):  # type: ignore[no-untyped-def]
    """Fill in features in single precision, zero where they are next to nothing."""
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            value = np.float32(features[row, column])
            out[row, column] = np.float32(0.0) if abs(value) < _SINGLE_ZERO else value


@numba.njit(cache=True, nogil=True)
def _any_in(product):  # type: ignore[no-untyped-def]
    """Tell of every row whether it holds a number other than zero; most do at once."""
    found = np.zeros(product.shape[0], dtype=np.bool_)
    for row in range(product.shape[0]):
        for column in range(product.shape[1]):
            if product[row, column] != 0:
                found[row] = True
                break
    return found


def _lower_product(left: Floats | Singles, right: Floats | Singles) -> Floats | Singles:
    """Return the lower triangle of the symmetric ``left' right``; what is above it means nothing."""
    s = left.shape[1]
    out = np.zeros((s, s), left.dtype)
    width = max(1, -(-s // 4))
    for begin in range(0, s, width):
        out[begin:, begin : begin + width] = left[:, begin:].T @ right[:, begin : begin + width]
    return out


def _conjugate_gradients(Z: Floats, at: LossAt, C: float, gradient: Floats, accuracy: float) -> Floats | None:
    """Solve until the residual is `accuracy` times the gradient's length; None if that takes long."""
    step = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    rho = float(residual @ residual)
    target = accuracy * math.sqrt(rho)
    for _ in range(_MAX_CG_STEPS):
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
    loss: Loss,
    C: float,
) -> tuple[Floats, Floats, LossAt, float] | None:
    """Go along the step to where the slope has all but vanished; None if nothing is gained.

    The objective is convex along the step, so its slope rises from a negative value: bracket its zero, then
    close in by turns of false position and bisection. Most often the full step will do at once.
    """
    low, low_slope = 0.0, slope
    high, high_slope = math.inf, math.nan
    length = 1.0
    best: tuple[Floats, Floats, LossAt, float] | None = None
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
