"""Views that are copies: views along a dimension that is cut, which had to become whole for them.

    row = x[1]        # x is cut along its rows, so each process gets a copy of the row
    row.zero_()       # write_through() zeroes the row of x
    x.add_(1)         # row is 1: bring_up_to_date() copies again when row is read

A view and its base have one version counter. It counts the operators that write to DTensors, and so
it is the same in all processes: they notice a write together, and exchange elements together.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.utils.weak import WeakIdRef


@dataclasses.dataclass
class _Origin:
    """The call that made a copied view, and the version of its elements."""

    bound: Any
    name: str  # of the argument that is the base
    version: int


# From copied views, which are not kept alive. Attributes of them would go to pickles and copies.
_origins: Dict[WeakIdRef, _Origin] = {}


def _origin_of(tensor: Tensor) -> Optional[_Origin]:
    return _origins.get(WeakIdRef(tensor)) if _origins else None


def follow(view: Tensor, bound: Any, name: str) -> None:
    """Remember that `view` is a copy of what `bound` gives for its argument `name`."""
    if not view.is_inference():  # such a tensor has no version
        key = WeakIdRef(view, lambda gone: _origins.pop(gone, None))
        _origins[key] = _Origin(bound, name, view._version)


def is_copied(tensor: Tensor) -> bool:
    """Whether a tensor is a copied view."""
    return _origin_of(tensor) is not None


def bring_up_to_date(view: Tensor) -> None:
    """Copy the elements of the base again, if there was a write since the last time."""
    origin = _origin_of(view)
    if origin is None:
        return
    with _C.DisableTorchFunctionSubclass():
        version = view._version
        if version == origin.version:
            return
        origin.version = version
        with no_grad():
            _copy(view, origin)


def _copy(view: Any, origin: _Origin) -> None:
    from treadle.distributed.tensor import _special
    from treadle.distributed.tensor._redistribute import redistribute_local_tensor

    whole = _special.whole_of(origin.bound.args[origin.name])
    elements = origin.bound.called(origin.bound.func, {origin.name: whole})
    source = _special.replicated(elements, view._spec.mesh)._spec
    wanted = source.with_placements(view._spec.placements)
    # The other tensors of this process that share the memory of the view follow as well.
    vars(view)["_local_tensor"].copy_(redistribute_local_tensor(elements, source, wanted))


def write_through(view: Tensor) -> None:
    """Give the base of a copied view the elements of the view; nothing for other tensors."""
    from treadle.distributed.tensor import _special

    origin = _origin_of(view)
    if origin is None:
        return
    base = origin.bound.args[origin.name]
    whole = _special.whole_of(base).clone()
    origin.bound.called(origin.bound.func, {origin.name: whole}).copy_(_special.whole_of(view))
    _special.put(base, whole)


__all__ = ["bring_up_to_date", "follow", "is_copied", "write_through"]
