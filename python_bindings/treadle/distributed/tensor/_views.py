"""The labels of views, from the strides that a view gives a contiguous tensor without elements.

A dimension spans bytes: its size times its stride. A dimension of the result that spans what a
dimension of the argument does has the same positions, though there may be more or fewer of them:
that of a flattened tensor goes with the first one that was flattened.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.tensor._labels import Call, Labelling, Labels
from treadle.distributed.tensor._utils import contiguous_stride


def plain(shape: Sequence[int], stride: Sequence[int], dtype: Any) -> Tensor:
    """A tensor without elements, on the meta device."""
    return _C.empty_strided(tuple(shape), tuple(stride), dtype=dtype, device="meta")


def _spans(tensor: Tensor) -> List[Tuple[int, int, int]]:
    """(bytes that it spans, stride in bytes, size) of each dimension of more than one element."""
    width = tensor.element_size()
    return [
        (size * step * width, step * width, size)
        for size, step in zip(tensor.shape, tensor.stride())
    ]


def matched(source: Tensor, view: Tensor) -> Tuple[Labels, Labels]:
    """The labels of the dimensions of a contiguous tensor and of a view of it."""
    if source.shape == view.shape and source.stride() == view.stride():  # detach(), and the like
        return [f"d{d}" for d in range(source.dim())], [f"d{d}" for d in range(view.dim())]
    found: Labels = [None] * source.dim()
    result: Labels = [None] * view.dim()
    # A view with steps leaves elements out: its dimensions are others, though they span the same.
    is_whole = source.numel() * source.element_size() == view.numel() * view.element_size()
    for d, (span, _, size) in enumerate(_spans(source)):
        if size < 2:
            continue
        for j, (other, step, count) in enumerate(_spans(view)):
            if other == span and step > 0 and count > 1 and (is_whole or count == size):
                found[d] = result[j] = f"d{d}"
                break
    return found, result


def of_view(call: Call, view_of: Callable[[Tensor], Tensor]) -> Labelling:
    """A view: `view_of` makes it of another tensor."""
    tensor = call.tensors[0]
    shape = tuple(tensor.shape)
    if "stride" in call.args:  # a view of memory, and not of a tensor
        made = view_of(plain(shape, tensor.stride(), tensor.dtype))
        return Labelling([[None] * len(shape)], [[None] * made.dim()])
    contiguous = plain(shape, contiguous_stride(shape), tensor.dtype)
    try:
        view = view_of(contiguous)
    except RuntimeError:
        # A size that the strides of this tensor allow, and those of a contiguous one do not.
        made = view_of(plain(shape, tensor.stride(), tensor.dtype))
        return Labelling([[None] * len(shape)], [[None] * made.dim()])
    labels, result = matched(contiguous, view)
    sizes = {"size": result} if isinstance(call.args.get("size"), (list, tuple)) else {}
    lengths = {label: view.shape[j] for j, label in enumerate(result) if label}
    return Labelling(
        [labels], [result], linear=[frozenset([0])], moves=True, sizes=sizes, lengths=lengths
    )


def of_gradient(call: Call, view: Callable, made: Tensor) -> Labelling:
    """An operator whose argument is a view of its result, `made`: the gradient of a view."""
    assert call.facts.view_of is not None
    rest = [call.args.get(name) for name in call.facts.view_of[1]]
    shape = tuple(made.shape)
    contiguous = plain(shape, contiguous_stride(shape), made.dtype)
    result, labels = matched(contiguous, view(contiguous, *rest))
    sizes = {
        name: result
        for name in call.facts.arguments
        if isinstance(call.args.get(name), (list, tuple)) and tuple(call.args[name]) == shape
    }
    return Labelling([labels], [result], linear=[frozenset([0])], moves=True, sizes=sizes)


__all__ = ["matched", "of_gradient", "of_view", "plain"]
