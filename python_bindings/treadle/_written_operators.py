"""Operators of aten that are written in Python: nothing in the library calls them, and programs
know them by name, as the keys of a table of their own.

    treadle.ops.aten._pin_memory.default      # defined here when it is first asked for
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import treadle
from treadle.library import Library


def _pin_memory(self: treadle.Tensor, device: Any = None) -> treadle.Tensor:
    return self.pin_memory()


def _sparse_addmm(
    self: treadle.Tensor, mat1: treadle.Tensor, mat2: treadle.Tensor, beta: Any = 1, alpha: Any = 1
) -> treadle.Tensor:
    return treadle.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_mm_reduce_impl(self: treadle.Tensor, other: treadle.Tensor, reduce: str) -> Any:
    raise NotImplementedError(
        f"_sparse_mm_reduce_impl: expected a matrix by rows, got the layout {self.layout}; of the "
        "sparse layouts there is the one by coordinates alone"
    )


_WRITTEN: Dict[str, Tuple[str, Callable[..., Any]]] = {
    "_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", _pin_memory),
    "_sparse_addmm": (
        "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        _sparse_addmm,
    ),
    "_sparse_mm_reduce_impl": (
        "(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
        _sparse_mm_reduce_impl,
    ),
}
_library = Library("aten", "FRAGMENT")


def define(name: str) -> bool:
    """Defines an operator that is written here; whether there is one."""
    if name not in _WRITTEN:
        return False
    schema, function = _WRITTEN.pop(name)
    _library.define(name + schema)
    _library.impl(name, function, "CompositeImplicitAutograd")
    return True
