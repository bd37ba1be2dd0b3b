"""The cost of a step of an optimiser: one native call over all parameters against a loop over them.

100 parameters of 10x10. The loop is the same step written with in-place operators, one tensor after
the other; the call is that of the native step alone, on lists that are there already; `step()` is
the whole of the optimiser, which gathers the lists. Medians of short repetitions, interleaved, so
that noise meets every candidate alike, in time of the processor, as nothing here is long enough for
several threads. With PyTorch installed, its `step()` too.

    ./dev bench optimizer_step
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from typing import Any, Callable

from _rounds import medians

import treadle
from treadle import _C

try:
    import torch
except ImportError:
    torch = None

REPEATS, CALLS, PARAMETERS, SIDE = 41, 50, 100, 10
LR, BETA1, BETA2, EPS, MOMENTUM = 1e-3, 0.9, 0.999, 1e-8, 0.9


def tensors(make: Callable[..., treadle.Tensor]) -> list[treadle.Tensor]:
    return [make(SIDE, SIDE) for _ in range(PARAMETERS)]


def stepping(module: Any, name: str, **settings: Any) -> Callable[[], Any]:
    """`step` of an optimiser of either library, its state made."""
    params = [module.nn.Parameter(module.randn(SIDE, SIDE)) for _ in range(PARAMETERS)]
    for param in params:
        param.grad = module.randn(SIDE, SIDE)
    optimizer = getattr(module.optim, name)(params, lr=LR, **settings)
    optimizer.step()
    return optimizer.step


def adam() -> dict[str, Callable[[], Any]]:
    params, grads = tensors(treadle.randn), tensors(treadle.randn)
    means, squares = tensors(treadle.zeros), tensors(treadle.zeros)
    steps = [treadle.tensor(0.0) for _ in range(PARAMETERS)]

    def loop() -> None:
        for param, grad, mean, square, step in zip(params, grads, means, squares, steps):
            step.add_(1)
            t = step.item()
            mean.lerp_(grad, 1 - BETA1)
            square.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
            scale = square.sqrt().div_((1 - BETA2**t) ** 0.5).add_(EPS)
            param.addcdiv_(mean, scale, value=-LR / (1 - BETA1**t))

    def call() -> None:
        _C._fused_adam_(
            params, grads, means, squares, [], steps, lr=LR, beta1=BETA1, beta2=BETA2,
            weight_decay=0.0, eps=EPS, amsgrad=False, maximize=False,
        )  # fmt: skip

    loop()  # no step is the zeroth
    return {"loop": loop, "native call": call, "Adam.step()": stepping(treadle, "Adam")}


def sgd() -> dict[str, Callable[[], Any]]:
    params, grads, velocities = (tensors(treadle.randn) for _ in range(3))

    def loop() -> None:
        for param, grad, velocity in zip(params, grads, velocities):
            velocity.mul_(MOMENTUM).add_(grad)
            param.add_(velocity, alpha=-LR)

    def call() -> None:
        _C._fused_sgd_(
            params, grads, velocities, weight_decay=0.0, momentum=MOMENTUM, lr=LR, dampening=0.0,
            nesterov=False, maximize=False, is_first_step=False,
        )  # fmt: skip

    whole = stepping(treadle, "SGD", momentum=MOMENTUM)
    return {"loop": loop, "native call": call, "SGD.step()": whole}


def main() -> None:
    found = {"Adam": adam(), "SGD with momentum": sgd()}
    if torch is not None:
        settings = {"Adam": ("Adam", {}), "SGD with momentum": ("SGD", {"momentum": MOMENTUM})}
        for title, (name, given) in settings.items():
            found[title]["PyTorch's step()"] = stepping(torch, name, **given)
            found[title]["PyTorch's, fused"] = stepping(torch, name, fused=True, **given)
    for title, candidates in found.items():
        print(f"\n{title}, {PARAMETERS} parameters of {SIDE}x{SIDE}")
        times = medians(candidates, REPEATS, CALLS, clock=time.process_time)
        for name, t in times.items():
            print(
                f"  {name:20s} {t * 1e6:8.1f} us   {times['loop'] / t:5.1f} x as fast as the loop"
            )


if __name__ == "__main__":
    main()
