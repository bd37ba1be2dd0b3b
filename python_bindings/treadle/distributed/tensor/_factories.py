"""Functions that make tensors that are spread: each process makes its part.

zeros(4, 3, device_mesh=mesh, placements=[Shard(0)])
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh, _mesh_resources
from treadle.distributed.tensor._api import DTensor, Placements, redistributed
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._utils import (
    contiguous_stride,
    normalize_to_torch_size,
    normalized,
)
from treadle.distributed.tensor.placement_types import Replicate


def _made(
    function: str,
    shape: Size,
    make: Callable[[Any], Tensor],
    whole: bool,
    layout: Any,
    requires_grad: bool,
    device_mesh: Optional[DeviceMesh],
    placements: Placements,
) -> DTensor:
    """The tensor whose part `make` makes, given its sizes; or all of it, of which each process
    takes its part."""
    if layout not in (None, _C.strided):
        raise NotImplementedError(f"{function}: expected layout = strided, got {layout}")
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    places = normalized(function, placements, len(shape), mesh)
    if any(placement.is_partial() for placement in places):
        raise ValueError(
            f"{function}: expected placements Shard or Replicate, got {places}: parts of a sum are "
            "made by from_local()"
        )
    dims = (Replicate(),) * mesh.ndim
    with no_grad(), _C.device(mesh.device_type):
        if not mesh._is_current_rank_part_of_mesh():
            local = make((0,))
        elif whole:
            made = make(tuple(shape))
            meta = TensorMeta(shape, contiguous_stride(shape), made.dtype)
            local = redistributed(made, DTensorSpec(mesh, dims, meta), places)._local_tensor
        else:
            meta = TensorMeta(shape, contiguous_stride(shape), None)
            local = make(DTensorSpec(mesh, places, meta).local_shape())
    meta = TensorMeta(shape, contiguous_stride(shape), local.dtype)
    return DTensor(local, DTensorSpec(mesh, places, meta), requires_grad=requires_grad)


def _filled(name: str, value: Callable[..., Tensor]) -> Callable[..., DTensor]:
    def function(
        *size: Any,
        dtype: Any = None,
        layout: Any = None,
        requires_grad: bool = False,
        device_mesh: Optional[DeviceMesh] = None,
        placements: Placements = None,
    ) -> DTensor:
        shape = normalize_to_torch_size(size)
        return _made(
            name, shape, lambda part: value(part, dtype=dtype), name in ("rand", "randn"), layout,
            requires_grad, device_mesh, placements,
        )  # fmt: skip

    function.__name__ = function.__qualname__ = name
    return function


zeros = _filled("zeros", _C.zeros)
zeros.__doc__ = """A DTensor of the given sizes, filled with 0.

Args:
    size: ints, or one sequence of ints.
    dtype: the dtype; by default the default dtype.
    layout: strided, or None for the same.
    requires_grad: whether operators on it are recorded.
    device_mesh: the mesh; by default the one that the program is in.
    placements: Shard or Replicate for each dimension of the mesh; by default Replicate.
"""
ones = _filled("ones", _C.ones)
ones.__doc__ = "As zeros(), filled with 1."
empty = _filled("empty", _C.empty)
empty.__doc__ = "As zeros(), with elements that are not set."
rand = _filled("rand", _C.rand)
rand.__doc__ = """As zeros(), with random numbers from [0, 1): those that one process would draw, if the
generators of all processes are in the same state."""
randn = _filled("randn", _C.randn)
randn.__doc__ = "As rand(), with normally distributed numbers."


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: Optional[DeviceMesh] = None,
    placements: Placements = None,
) -> DTensor:
    """As zeros(), of the sizes `size`, filled with `fill_value`."""
    shape = normalize_to_torch_size(size)
    return _made(
        "full", shape, lambda part: _C.full(part, fill_value, dtype=dtype), False, layout,
        requires_grad, device_mesh, placements,
    )  # fmt: skip


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: Optional[DeviceMesh] = None,
    placements: Placements = None,
) -> DTensor:
    """A DTensor of `steps` numbers, evenly from `start` to `end`; else as zeros()."""
    return _made(
        "linspace", Size([steps]), lambda _: _C.linspace(start, end, steps, dtype=dtype), True,
        layout, requires_grad, device_mesh, placements,
    )  # fmt: skip


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: Optional[DeviceMesh] = None,
    placements: Placements = None,
) -> DTensor:
    """A DTensor of powers of `base`, whose exponents are those of linspace(); else as zeros()."""
    return _made(
        "logspace", Size([steps]), lambda _: _C.logspace(start, end, steps, base, dtype=dtype),
        True, layout, requires_grad, device_mesh, placements,
    )  # fmt: skip


__all__ = ["empty", "full", "linspace", "logspace", "ones", "rand", "randn", "zeros"]
