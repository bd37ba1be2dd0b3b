"""Functions that take tensors, or shapes, one by one or as a list.

Example:

    x, y = meshgrid(arange(3), arange(4))
    broadcast_shapes((2, 1), (3,))    # Size([2, 3])
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle._C import Size, Tensor
from treadle._functions.overridable import make_overridable as _make_overridable


def _gathered(tensors: Tuple[Any, ...]) -> Tuple[Any, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(tensors[0])
    return tensors


def broadcast_tensors(*tensors: Any) -> Tuple[Tensor, ...]:
    """Views of the tensors, each repeated to the shape they have together."""
    return _C.broadcast_tensors(_gathered(tensors))


def broadcast_shapes(*shapes: Union[int, Sequence[int]]) -> Size:
    """The shape that tensors of these shapes have together."""
    result: List[int] = []
    for shape in shapes:
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(size < 0 for size in sizes):
            raise RuntimeError(f"broadcast_shapes: expected sizes >= 0, got {tuple(sizes)}")
        result = [1] * (len(sizes) - len(result)) + result
        for d in range(1, len(sizes) + 1):
            if sizes[-d] == 1 or sizes[-d] == result[-d]:
                continue
            if result[-d] != 1:
                raise RuntimeError(
                    "broadcast_shapes: expected shapes that broadcast together, got "
                    + " and ".join(str(s) for s in shapes[:6])
                )
            result[-d] = sizes[-d]
    return Size(result)


def meshgrid(*tensors: Any, indexing: Optional[str] = None) -> Tuple[Tensor, ...]:
    """For tensors of 0 or 1 dimensions, their values along one dimension each of a common grid.

    `indexing` is "ij", or "xy" for the first two dimensions in the other order; without it there is
    a warning, and it is "ij". RuntimeError for another one.
    """
    if indexing is None:
        warnings.warn(
            'meshgrid: indexing will have to be given; without it, it is "ij"', stacklevel=3
        )
        indexing = "ij"
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'meshgrid: expected indexing to be "xy" or "ij", got {indexing!r}')
    return _C.meshgrid(_gathered(tensors), indexing=indexing)


def _atleast(name: str) -> Any:
    operator = getattr(_C, name)

    def atleast(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return operator(tensors[0])
        return operator(_gathered(tensors))

    atleast.__name__ = atleast.__qualname__ = name
    atleast.__doc__ = operator.__doc__
    return atleast


atleast_1d = _atleast("atleast_1d")
atleast_2d = _atleast("atleast_2d")
atleast_3d = _atleast("atleast_3d")

_make_overridable(
    __name__, ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "meshgrid"]
)
