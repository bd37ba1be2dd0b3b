"""Batches in parts: split_args_kwargs_into_chunks() and its inverse, merge_chunks().

args, kwargs = split_args_kwargs_into_chunks((x, 3), {"mask": mask}, 4)
args[0]                                # (the first quarter of x, 3)
merge_chunks(args, (TensorChunkSpec(0), None))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.utils._pytree import tree_flatten, tree_map, tree_unflatten

DEFAULT_CHUNK_DIM = 0


class TensorChunkSpec:
    """Says that a tensor is split along `split_dim`."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorChunkSpec) and self.split_dim == other.split_dim

    def __hash__(self) -> int:
        return hash((TensorChunkSpec, self.split_dim))

    @staticmethod
    def from_tuple(chunk_dims: Tuple[int, ...]) -> Any:
        """The same tuple with specs in place of dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: Dict[str, int]) -> Any:
        """The same dictionary with specs in place of dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """Says that each part gets the whole value."""

    def __repr__(self) -> str:
        return "_Replicate()"


class _CustomReducer:
    """Says that merge_chunks() folds the values with a function, from an initial value."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]) -> None:
        self.init_value = init_value
        self.reduce_fn = reduce_fn


def _is_replicated(spec: Any) -> bool:
    return spec is _Replicate or isinstance(spec, _Replicate)


def _by_default(value: Any) -> Any:
    return TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(value, Tensor) else _Replicate()


def _split_tensor(tensor: Tensor, spec: TensorChunkSpec, num_chunks: int) -> Sequence[Tensor]:
    """The parts of a tensor, the first ones longer by one where it does not divide. Gradients of
    the parts of a leaf are kept, as the pipeline reads them."""
    chunks = _C.tensor_split(tensor, num_chunks, spec.split_dim)
    if tensor.requires_grad and tensor.is_leaf:
        for chunk in chunks:
            chunk.retain_grad()
    return chunks


def _paired(values: Any, specs: Any, what: str) -> Tuple[List[Any], List[Any], Any]:
    """Leaves, their specs, and the form of a tree. ValueError where the forms differ."""
    leaves, form = tree_flatten(values)
    flat, _ = tree_flatten(specs)
    if len(leaves) != len(flat):
        raise ValueError(
            f"split_args_kwargs_into_chunks: expected a spec for each of {len(leaves)} {what}, "
            f"got {len(flat)}"
        )
    for leaf, spec in zip(leaves, flat):
        if not _is_replicated(spec) and not (
            isinstance(leaf, Tensor) and isinstance(spec, TensorChunkSpec)
        ):
            raise ValueError(f"Unsupported chunk spec: {spec} and value: {leaf} combination.")
    return leaves, flat, form


def _most(leaves: List[Any], specs: List[Any], chunks: int) -> int:
    """How many parts, at most `chunks`, the shortest tensor allows."""
    sizes = [
        leaf.size(spec.split_dim) for leaf, spec in zip(leaves, specs) if not _is_replicated(spec)
    ]
    return min([chunks, *sizes])


def _split(leaves: List[Any], specs: List[Any], form: Any, chunks: int) -> List[Any]:
    columns = [
        [leaf] * chunks if _is_replicated(spec) else _split_tensor(leaf, spec, chunks)
        for leaf, spec in zip(leaves, specs)
    ]
    return [tree_unflatten([column[i] for column in columns], form) for i in range(chunks)]


def split_args_kwargs_into_chunks(
    args: Tuple[Any, ...],
    kwargs: Optional[Dict[str, Any]],
    chunks: int,
    args_chunk_spec: Optional[Tuple[Any, ...]] = None,
    kwargs_chunk_spec: Optional[Dict[str, Any]] = None,
) -> Tuple[List[Tuple[Any, ...]], List[Dict[str, Any]]]:
    """Arguments for each of `chunks` microbatches: lists of tuples and of dictionaries. Without
    specs tensors are split along dimension 0, and each part gets all other values. There are fewer
    parts where a tensor is shorter than `chunks`.

    ValueError where specs and arguments differ in form.
    """
    kwargs = kwargs or {}
    args_spec = tree_map(_by_default, args) if args_chunk_spec is None else args_chunk_spec
    kwargs_spec = tree_map(_by_default, kwargs) if kwargs_chunk_spec is None else kwargs_chunk_spec
    if set(kwargs_spec) != set(kwargs):
        raise ValueError(
            f"split_args_kwargs_into_chunks: expected specs for {sorted(kwargs)}, "
            f"got those for {sorted(kwargs_spec)}"
        )
    by_place = _paired(tuple(args), tuple(args_spec), "arguments")
    by_name = _paired(kwargs, {name: kwargs_spec[name] for name in kwargs}, "keyword arguments")
    count = min(_most(*by_place[:2], chunks), _most(*by_name[:2], chunks))
    return _split(*by_place, count), _split(*by_name, count)


def merge_chunks(chunks: List[Any], chunk_spec: Any) -> Any:
    """The whole of values in parts: tensors are joined along the dimension of their spec, by
    default 0; values without a spec must be equal in all parts.

    ValueError where spec and values differ in form, AssertionError where values differ.
    """
    first, form = tree_flatten(chunks[0])
    if chunk_spec is None:
        specs: List[Any] = [TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(first)
    else:
        specs, form = tree_flatten(chunk_spec)
    rows = [tree_flatten(chunk)[0] for chunk in chunks]
    for chunk, row in zip(chunks, rows):
        if len(row) != len(specs):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
    return tree_unflatten(
        [_merge([row[place] for row in rows], spec) for place, spec in enumerate(specs)], form
    )


def _merge(values: List[Any], spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return _C.cat(values, dim=spec.split_dim)
    if isinstance(spec, _CustomReducer):
        reduced = spec.init_value
        for value in values:
            reduced = spec.reduce_fn(reduced, value)
        return reduced
    for value in values[1:]:
        if value != values[0]:
            raise AssertionError(f"Expected {values[0]}, got {value}")
    return values[0]


__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]
