"""associative_scan: running results of a function for which grouping does not matter.

Example:

    associative_scan(lambda a, b: a * b, x, dim=0)      # cumprod
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List

from treadle import _C
from treadle.utils._pytree import tree_flatten, tree_leaves

Tensor = _C.Tensor


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """For each place i along `dim`, combine_fn(...combine_fn(x[0], x[1])..., x[i]); from the other
    end with `reverse`.

    `xs` is a tensor or a tree of tensors of one size along `dim`; combine_fn takes two such trees
    and returns one. It is called with many places at once, in about 2 log2(size) calls: in the mode
    "pointwise" with the dimension first, in "generic" through vmap over it. Its result must not
    depend on how calls are grouped.

    ValueError for no tensors, sizes that differ, and another mode; TypeError for what is no
    function; IndexError for a dimension that is not there.
    """
    from treadle.func import vmap

    if not callable(combine_fn):
        raise TypeError(
            "associative_scan: expected combine_fn to be a function, Combine_fn must be a "
            f"callable, got {type(combine_fn).__name__}"
        )
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            "associative_scan: expected combine_mode to be 'pointwise' or 'generic', got "
            f"{combine_mode!r}"
        )
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("associative_scan: expected tensors, got none or something else")
    first = [leaf.movedim(dim, 0) for leaf in leaves]
    sizes = {leaf.shape[0] for leaf in first}
    if len(sizes) > 1:
        raise ValueError(
            f"associative_scan: expected one size along dimension {dim}, got {sorted(sizes)}"
        )

    many = vmap(combine_fn) if combine_mode == "generic" else combine_fn

    def combine(a: List[Tensor], b: List[Tensor]) -> List[Tensor]:
        result = tree_leaves(many(spec.unflatten(a), spec.unflatten(b)))
        shapes = [leaf.shape for leaf in result]
        if shapes != [leaf.shape for leaf in a]:
            raise RuntimeError(
                "associative_scan: expected combine_fn to return what it was given, of shapes "
                f"{[tuple(leaf.shape) for leaf in a]}, got {[tuple(shape) for shape in shapes]}"
            )
        return result

    turned = [leaf.flip(0) for leaf in first] if reverse else first
    done = _scan(combine, turned)
    if reverse:
        done = [leaf.flip(0) for leaf in done]
    return spec.unflatten(leaf.movedim(0, dim) for leaf in done)


def _scan(
    combine: Callable[[List[Tensor], List[Tensor]], List[Tensor]], leaves: List[Tensor]
) -> List[Tensor]:
    """Neighbours are combined; the running results of the pairs are those of the odd places, and
    with one element more each they are those of the even ones."""
    size = leaves[0].shape[0]
    if size < 2:
        return leaves
    pairs = combine([x[: size - 1 : 2] for x in leaves], [x[1::2] for x in leaves])
    odd = _scan(combine, pairs)
    before = [x[: (size - 1) // 2] for x in odd]
    later = combine(before, [x[2::2] for x in leaves]) if size > 2 else before
    return [
        _alternating(_C.cat([x[:1], more]) if size > 2 else x[:1], second)
        for x, more, second in zip(leaves, later, odd)
    ]


def _alternating(even: Tensor, odd: Tensor) -> Tensor:
    both = _C.stack([even[: odd.shape[0]], odd], dim=1).flatten(0, 1)
    return both if even.shape[0] == odd.shape[0] else _C.cat([both, even[-1:]])
