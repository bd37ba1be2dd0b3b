"""Operators over lists of tensors: `treadle.foreach.add(tensors, others)`.

    treadle.foreach.mul([x, y], 2)              # (x * 2, y * 2)
    treadle.foreach.add_(parameters, steps)     # in place; gives `parameters` back

A function stands for each operator `_foreach_NAME`, whose lists have as many elements as `inputs`.
It takes `inputs` by position, and what the operator takes after its list. One without `_` at its
end returns a tuple.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List

from treadle import _C, _names

_PREFIX = "_foreach_"


def _is_public(operator: str) -> bool:
    # The sum of powers is a step of the norm, and no function of its own in PyTorch.
    return operator.startswith(_PREFIX) and operator != "_foreach_powsum"


__all__ = sorted(n[len(_PREFIX) :] for n in _C._private_operators() if _is_public(n))


def _function(name: str) -> Callable[..., Any]:
    operator = getattr(_C, _PREFIX + name)

    def changed(inputs: Any, /, *args: Any, **kwargs: Any) -> Any:
        operator(inputs, *args, **kwargs)
        return inputs

    def made(inputs: Any, /, *args: Any, **kwargs: Any) -> tuple:
        return tuple(operator(inputs, *args, **kwargs))

    function = changed if name.endswith("_") else made
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Apply `{name}` to every tensor of `inputs`, a list or a tuple."
    return function


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise _names.missing(__name__, name)
    function = globals()[name] = _function(name)
    return function


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
