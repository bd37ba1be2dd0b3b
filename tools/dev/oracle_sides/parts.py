"""The checks of a sample, the same under both libraries: values, gradients, `out=` and so on.

`parts_of(torch, case)` yields pairs of a name and a function without arguments that does it. Each
decodes the arguments anew, so that none sees what another has written.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

import numpy as np
from plain import contiguous_strides, decode

Part = tuple[str, Callable[[], Any]]


@dataclass
class Case:
    """A sample: what to call, with what, and in which ways."""

    operator: str
    dtype: str
    index: int
    kind: str  # operator, error, module, optimizer
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    method: str = ""
    inplace: str = ""
    out: bool = False
    orders: int = 0  # how many derivatives
    more: dict[str, Any] = field(default_factory=dict)


def tensors(torch: Any, value: Any) -> Iterator[Any]:
    """All tensors in lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(torch, v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from tensors(torch, v)


def mapped(torch: Any, value: Any, function: Callable[[Any], Any]) -> Any:
    """The same lists, tuples and dictionaries with other tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        made = [mapped(torch, v, function) for v in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict):
        return {k: mapped(torch, v, function) for k, v in value.items()}
    return value


def weights(torch: Any, tensor: Any, scale: float = 0.7) -> Any:
    """Numbers to multiply a result with before it is summed: those of each element are others."""
    wave = np.cos(1.0 + scale * np.arange(tensor.numel()))
    values = wave + 0.5j * wave[::-1] if tensor.is_complex() else wave
    return torch.from_numpy(values.copy()).to(tensor.dtype).reshape(tensor.shape)


def gradients(torch: Any, function: Any, args: Any, kwargs: Any, order: int) -> Any:
    """The derivatives of a weighted sum of the results in each tensor that asks for them."""
    leaves = [t for t in tensors(torch, [args, kwargs]) if t.requires_grad]
    # A function may write to what it was given.
    given = mapped(torch, [args, kwargs], lambda t: t.view_as(t) if t.requires_grad else t)
    results = [t for t in tensors(torch, function(*given[0], **given[1])) if t.requires_grad]
    for i in range(order):
        if not results or not leaves:
            return [len(results), len(leaves)]
        found = torch.autograd.grad(
            results,
            leaves,
            [weights(torch, t, 0.7 + i) for t in results],
            allow_unused=True,
            create_graph=i + 1 < order,
        )
        results = [t for t in found if t is not None and t.requires_grad]
    return list(found)


def _outs(torch: Any, found: Any, make: Callable[[Any], Any]) -> Any:
    return mapped(torch, tuple(found) if isinstance(found, (tuple, list)) else found, make)


def _other_dtype(torch: Any, tensor: Any) -> Any:
    return torch.float64 if tensor.dtype != torch.float64 else torch.int64


def _other_strides(torch: Any, tensor: Any) -> Any:
    """Memory in which the dimensions lie in reverse order."""
    shape = tuple(tensor.shape)
    strides = contiguous_strides(shape[::-1])[::-1]
    return torch.empty_strided(shape, strides, dtype=tensor.dtype)


def _out_parts(torch: Any, function: Any, arguments: Callable[[], Any]) -> Iterator[Part]:
    ways: dict[str, Callable[[Any], Any]] = {
        "out": lambda t: torch.empty_like(t, memory_format=torch.contiguous_format),
        "out of no elements": lambda t: torch.empty(0, dtype=t.dtype),
        "out of other strides": lambda t: _other_strides(torch, t),
        "out of another dtype": lambda t: torch.empty(t.shape, dtype=_other_dtype(torch, t)),
    }

    def run(make: Callable[[Any], Any]) -> Any:
        args, kwargs = arguments()
        out = _outs(torch, function(*args, **kwargs), make)
        args, kwargs = arguments()
        torch.manual_seed(7)
        function(*args, **kwargs, out=out)
        return out

    for name, make in ways.items():
        yield name, lambda make=make: run(make)


def _operator_parts(torch: Any, case: Case) -> Iterator[Part]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return decode(torch, case.function)(*args, **kwargs)

    def arguments() -> Any:
        given = (decode(torch, case.args), decode(torch, case.kwargs))
        return mapped(torch, given, lambda t: t.detach())

    def call(with_function: Any) -> Any:
        args, kwargs = arguments()
        return with_function(*args, **kwargs)

    def inplace() -> Any:
        args, kwargs = arguments()
        first = args[0].clone()
        result = getattr(torch.Tensor, case.inplace)(first, *args[1:], **kwargs)
        return [result is first, first]

    yield "values", lambda: call(function)
    if case.kind == "error":
        return
    if case.method:
        yield "method", lambda: call(getattr(torch.Tensor, case.method))
    if case.inplace:
        yield "in-place", inplace
    if case.out:
        yield from _out_parts(torch, function, arguments)
    for order in range(1, case.orders + 1):
        name = ("gradients", "second order")[order - 1]
        yield (
            name,
            lambda order=order: gradients(
                torch, function, decode(torch, case.args), decode(torch, case.kwargs), order
            ),
        )


def _module_parts(torch: Any, case: Case) -> Iterator[Part]:
    def make() -> Any:
        args, kwargs = decode(torch, case.more["constructor"])
        module = decode(torch, case.function)(*args, **kwargs)
        module.train(case.more["training"])
        module.load_state_dict(decode(torch, case.more["state"]))
        return module

    def run(order: int) -> Any:
        module = make()
        args, kwargs = decode(torch, case.args), decode(torch, case.kwargs)
        if order == 0:
            return [module(*args, **kwargs), dict(module.named_buffers())]
        parameters = list(module.parameters())
        wanted = [*parameters, *(t for t in tensors(torch, [args, kwargs]) if t.requires_grad)]
        results = [t for t in tensors(torch, module(*args, **kwargs)) if t.requires_grad]
        if not results or not wanted:
            return [len(results), len(wanted)]
        given = [weights(torch, t) for t in results]
        return list(torch.autograd.grad(results, wanted, given, allow_unused=True))

    yield "values", lambda: run(0)
    yield "gradients", lambda: run(1)


def _optimizer_parts(torch: Any, case: Case) -> Iterator[Part]:
    def run() -> Any:
        parameters = decode(torch, case.args[0])
        flat = list(tensors(torch, parameters))
        optimizer = decode(torch, case.function)(parameters, **decode(torch, case.kwargs))

        def closure() -> Any:
            for i, p in enumerate(flat):
                p.grad = weights(torch, p, 0.7 + 0.1 * i) + p.detach() * 0.25
            return sum((p.detach().abs() ** 2).sum() for p in flat)

        for _ in range(3):
            optimizer.step(closure)
        return [[p.detach() for p in flat], optimizer.state_dict()]

    yield "values", run


def parts_of(torch: Any, case: Case) -> Iterator[Part]:
    """Everything that is done with a sample; seeds are set before each part."""
    kinds = {"module": _module_parts, "optimizer": _optimizer_parts}
    for name, run in kinds.get(case.kind, _operator_parts)(torch, case):

        def seeded(run: Callable[[], Any] = run) -> Any:
            torch.manual_seed(7)
            random.seed(7)
            np.random.seed(7)
            return run()

        yield name, seeded
