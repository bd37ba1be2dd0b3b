"""Tensors of other layouts than strided, as autograd sees them: it records their values alone."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from itertools import islice
from typing import Any, Callable, List, Sequence, Tuple

from treadle import _C


def has_parts(x: Any) -> bool:
    """Whether a value is a tensor that is made of strided ones."""
    # A nested tensor is no tensor of the extension module, though isinstance() says so.
    return issubclass(type(x), _C.Tensor) and x.layout != _C.strided


def recorded(x: Any) -> Any:
    """The tensor of a root or an input that is in the graph."""
    return _C._layout_values(x) if has_parts(x) else x


def start_for(root: Any, start: Any) -> Any:
    """The gradient with which a backward pass begins at recorded(root). That of a sparse root may
    be given strided or sparse."""
    if start is None or not has_parts(root):
        return start
    return recorded(start.to_dense().sparse_mask(root.detach()))


def as_gradient_of(x: Any, gradient: Any) -> Any:
    """The gradient of an input, from that of recorded(x)."""
    if gradient is None or not has_parts(x):
        return gradient
    return _C._with_layout_values(x, gradient)


def taken_apart(tensors: Sequence[Any]) -> Tuple[Callable[[Sequence[Any]], tuple], List[Any]]:
    """The strided tensors of which some tensors consist, and the function that makes tensors like
    the given ones from such parts."""
    parts: List[Any] = []
    counts: List[int] = []
    for t in tensors:
        own = _C._layout_contents(t)[0].values() if has_parts(t) else [t]
        parts += own
        counts.append(len(own))
    # Without the tensors: what is kept for backward is the parts.
    forms = [
        (t.layout, t.shape, list(_C._layout_contents(t)[1].values())) if has_parts(t) else None
        for t in tensors
    ]

    def rebuild(parts: Sequence[Any]) -> tuple:
        rest = iter(parts)
        made: List[Any] = []
        for count, form in zip(counts, forms):
            own = list(islice(rest, count))
            if form is None:
                made += own
            else:
                layout, shape, fields = form
                made.append(_C._layout_tensor(layout, shape, own, fields))
        return tuple(made)

    return rebuild, parts
