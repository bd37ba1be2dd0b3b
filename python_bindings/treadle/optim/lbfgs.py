"""LBFGS: steps along an estimate of the inverse Hessian from the last gradients.

    optimizer = LBFGS(net.parameters(), line_search_fn="strong_wolfe")
    optimizer.step(closure)   # calls the closure, which gives the loss, several times

All parameters are one vector here. The line search is by a cubic through two points, with the
strong Wolfe conditions.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import enable_grad, no_grad

from .optimizer import Optimizer, check_lr, number, real


class LBFGS(Optimizer):
    """Limited-memory BFGS over all parameters at once, which are one group; `history_size`
    differences of gradients are kept.

    Liu & Nocedal (1989). A step makes up to `max_iter` iterations and `max_eval` evaluations of the
    closure (default: a quarter more than `max_iter`), and ends when the gradient is below
    `tolerance_grad` or the change below `tolerance_change`. `maximize` makes the loss large.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Union[float, Tensor] = 1,
        max_iter: int = 20,
        max_eval: Optional[int] = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: Optional[str] = None,
        *,
        maximize: bool = False,
    ) -> None:
        check_lr("LBFGS", lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # ---- the parameters as one vector --------------------------------------------------------

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    @property
    def _maximizes(self) -> bool:
        return self.param_groups[0].get("maximize", False)

    def _loss(self, value: Any) -> float:
        """The number to make small: the closure's loss, negated where that is to become large."""
        return -float(value) if self._maximizes else float(value)

    def _flat_grad(self) -> Tensor:
        parts = [
            real(_C.zeros_like(param) if param.grad is None else param.grad.to_dense()).reshape(-1)
            for param in self._params
        ]
        flat = _C.cat(parts)
        return flat.neg_() if self._maximizes else flat

    def _move(self, size: float, direction: Tensor) -> None:
        offset = 0
        for param in map(real, self._params):
            count = param.numel()
            param.add_(direction[offset : offset + count].view_as(param), alpha=size)
            offset += count

    # ---- a step --------------------------------------------------------------------------------

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate from where the parameters are; gives the loss that the closure returned there."""
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        lr, search = number(group["lr"]), group["line_search_fn"]
        change, max_iter = group["tolerance_change"], group["max_iter"]
        # The state of all parameters together, kept with the first.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = self._loss(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss

        iterations = 0
        while iterations < max_iter:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            state["prev_flat_grad"] = grad.clone()
            last_loss, state["prev_loss"] = loss, loss
            first = state["n_iter"] == 1
            size = lr / max(1.0, grad.abs().sum().item()) if first else lr
            state["t"] = size
            slope = grad.dot(direction).item()
            if slope > -change:
                break
            made = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [param.clone() for param in self._params]

                def evaluate(at: float) -> tuple[float, Tensor]:
                    self._move(at, direction)  # noqa: B023  called in this turn
                    value = self._loss(closure())
                    there = self._flat_grad()
                    for param, was in zip(self._params, start):  # noqa: B023
                        param.copy_(was)
                    return value, there

                origin = _Point(0.0, loss, grad, slope)
                found, made = _strong_wolfe(evaluate, direction, size, origin, change)
                loss, grad, size = found.value, found.grad, found.at
                state["t"] = size
                self._move(size, direction)
            else:
                self._move(size, direction)
                # Not after the last iteration, as nothing would be done with it.
                if iterations != max_iter:
                    loss = self._loss(closure())
                    grad = self._flat_grad()
                    made = 1
            evaluations += made
            state["func_evals"] += made
            if (
                iterations == max_iter
                or evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction * size) <= change
                or abs(loss - last_loss) < change
            ):
                break
        return first_loss

    def _direction(self, state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
        """Where to go from here: minus the gradient times the estimated inverse Hessian, by the
        two loops of Nocedal (1980)."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1, d=grad.neg())
            return state["d"]
        old_dirs, old_stps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        turn = grad.sub(state["prev_flat_grad"])
        moved = state["d"].mul(state["t"])
        curvature = turn.dot(moved)
        if curvature > 1e-10:
            if len(old_dirs) == history_size:
                for kept in (old_dirs, old_stps, ro):
                    kept.pop(0)
            old_dirs.append(turn)
            old_stps.append(moved)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / turn.dot(turn)
        weights = state.setdefault("al", [None] * history_size)
        direction = grad.neg()
        for i in range(len(old_dirs) - 1, -1, -1):
            weights[i] = old_stps[i].dot(direction) * ro[i]
            direction.add_(old_dirs[i] * -weights[i])
        direction = direction * state["H_diag"]
        for i in range(len(old_dirs)):
            direction.add_(old_stps[i] * (weights[i] - old_dirs[i].dot(direction) * ro[i]))
        state["d"] = direction
        return direction


def _largest(t: Tensor) -> float:
    return t.abs().max().item()


# ---- the line search -------------------------------------------------------------------------


@dataclass
class _Point:
    """A step size, and what was found there: the loss, its gradient, its slope along the line."""

    at: float
    value: float
    grad: Tensor
    slope: float


def _strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]],
    direction: Tensor,
    size: float,
    origin: _Point,
    tolerance_change: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    most: int = 25,
) -> tuple[_Point, int]:
    """A point along the line where the loss fell by enough and is flat enough, by Nocedal & Wright
    (2006), algorithms 3.5 and 3.6; and the number of evaluations it took."""

    def probe(at: float) -> _Point:
        value, grad = evaluate(at)
        return _Point(at, value, grad, grad.dot(direction).item())

    def too_high(point: _Point) -> bool:
        return point.value > origin.value + c1 * point.at * origin.slope

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * origin.slope

    # Two points with one between them that fits, or one that fits.
    before, point = origin, probe(size)
    evaluations, searched = 1, 0
    bracket: list[_Point] = []
    while searched < most:
        if too_high(point) or (searched > 1 and point.value >= before.value):
            bracket = [before, point]
        elif flat(point):
            return point, evaluations
        elif point.slope >= 0:
            bracket = [before, point]
        if bracket:
            break
        bounds = (point.at + 0.01 * (point.at - before.at), point.at * 10)
        before, point = point, probe(_cubic_minimum(before, point, bounds))
        evaluations += 1
        searched += 1
    if not bracket:
        bracket = [origin, point]

    low, high = (0, 1) if bracket[0].value <= bracket[1].value else (1, 0)
    stuck = False
    longest = _largest(direction)
    while searched < most:
        left, right = sorted(p.at for p in bracket)
        if (right - left) * longest < tolerance_change:
            break
        at = _cubic_minimum(bracket[0], bracket[1])
        # A minimum close to an end makes no progress: the second time, go a tenth away from it.
        margin = 0.1 * (right - left)
        if min(right - at, at - left) < margin:
            if stuck or at >= right or at <= left:
                at = right - margin if abs(at - right) < abs(at - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = probe(at)
        evaluations += 1
        searched += 1
        if too_high(point) or point.value >= bracket[low].value:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].value <= bracket[1].value else (1, 0)
            continue
        fits = flat(point)
        if not fits and point.slope * (bracket[high].at - bracket[low].at) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
        if fits:
            break
    return bracket[low], evaluations


def _cubic_minimum(a: _Point, b: _Point, bounds: Optional[tuple[float, float]] = None) -> float:
    """Where the cubic through two points with these slopes is lowest within bounds (the points by
    default); their middle where it has no minimum. Nocedal & Wright (2006), formula 3.59."""
    if a.at > b.at:
        a, b = b, a
    if a.at == b.at:
        return a.at
    lowest, highest = bounds if bounds is not None else (a.at, b.at)
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.at - b.at)
    square = d1 * d1 - a.slope * b.slope
    d2 = math.sqrt(square) if square >= 0 else math.nan
    curvature = b.slope - a.slope + 2 * d2
    if math.isnan(curvature) or curvature == 0:
        return (lowest + highest) / 2.0
    at = b.at - (b.at - a.at) * ((b.slope + d2 - d1) / curvature)
    return min(max(at, lowest), highest)
