"""Batches split among devices and brought together again, inside tuples, lists and dictionaries."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor


def _mapped(kind: Any, items: Sequence[Any]) -> Any:
    """A container of the same type as `kind` with other items."""
    if isinstance(kind, dict):
        return type(kind)(zip(kind, items))
    return type(kind)(*items) if hasattr(kind, "_fields") else type(kind)(items)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> List[Any]:
    """For each device the inputs with every tensor replaced by its piece along `dim`; what is no
    tensor goes to all. Fewer, if the tensors have fewer pieces."""
    count = len(target_gpus)

    def split(value: Any) -> List[Any]:
        if isinstance(value, Tensor):
            return [piece.to(to) for piece, to in zip(value.chunk(count, dim), target_gpus)]
        if isinstance(value, (tuple, list, dict)) and len(value):
            items = value.values() if isinstance(value, dict) else value
            return [_mapped(value, pieces) for pieces in zip(*map(split, items))]
        return [value] * count

    return split(inputs)


def scatter_kwargs(
    inputs: Tuple[Any, ...],
    kwargs: Optional[Dict[str, Any]],
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> Tuple[Tuple[Any, ...], Tuple[Dict[str, Any], ...]]:
    """scatter() of arguments and keyword arguments, as many of the one as of the other."""
    pieces = scatter(inputs, target_gpus, dim) if inputs else []
    keywords = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(pieces), len(keywords))
    pieces += [()] * (count - len(pieces))
    keywords += [{}] * (count - len(keywords))
    return tuple(pieces), tuple(keywords)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """One output from those of several devices: tensors are put together along `dim`, numbers
    (0-dim tensors) to a vector."""
    first = outputs[0]
    if first is None:
        return None
    join: Callable[[Sequence[Any]], Any] = (  # noqa: E731
        lambda parts: gather(parts, target_device, dim)
    )
    if isinstance(first, Tensor):
        moved = [part.to(target_device) for part in outputs]
        return _C.stack(moved) if first.dim() == 0 else _C.cat(moved, dim)
    if isinstance(first, dict):
        if any(part.keys() != first.keys() for part in outputs):
            raise ValueError("gather: expected dictionaries with the same keys")
        return _mapped(first, [join([part[key] for part in outputs]) for key in first])
    return _mapped(first, [join(parts) for parts in zip(*outputs)])
