"""vmap: a function of samples as a function of batches.

    vmap(torch.dot)(X, Y)                          # the products of rows
    vmap(f, in_dims=(0, None), out_dims=1)(X, w)   # w is the same for every sample

The function is called for each sample, and the results are stacked: so that every operator, and
anything else Python can do, is correct in it. The time is that of a loop.

A collection of tensors that overrides operators, as tensordict's do, is mapped and stacked as one:
it knows what its own batch is.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Tuple, Union

from treadle import _C, random
from treadle.autograd.function import in_vmap
from treadle.autograd.grad_mode import no_grad
from treadle.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_structure,
)

Tensor = _C.Tensor
Dims = Union[int, None, Tuple[Any, ...], List[Any], dict]


def _is_collection(value: Any) -> bool:
    kind = type(value)
    return (
        hasattr(kind, "__torch_function__")
        and hasattr(kind, "unbind")
        and not isinstance(value, Tensor)
    )


def _title(func: Callable, details: str) -> str:
    return f"vmap({getattr(func, '__name__', repr(func))}, {details})"


# ---- arguments ----


class _Batch:
    """The arguments of one call: which of their leaves are mapped, along which dimension."""

    def __init__(self, func: Callable, in_dims: Dims, args: Tuple[Any, ...]) -> None:
        self.title = _title(func, f"in_dims={in_dims}")
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{self.title}: expected in_dims to be an int or a (potentially nested) tuple "
                f"matching the structure of inputs, got {type(in_dims).__name__}"
            )
        if not args:
            raise ValueError(f"{self.title}: expected inputs, got no inputs")
        self.leaves, self.spec = tree_flatten(args, is_leaf=_is_collection)
        dims = _broadcast_to_and_flatten(in_dims, self.spec, lambda tree: tree is None)
        if dims is None:
            raise ValueError(
                f"{self.title}: expected in_dims of the structure of the inputs, "
                f"{tree_structure(args)}, got {tree_structure(in_dims)}"
            )
        self.dims = [self._checked(dim, leaf) for dim, leaf in zip(dims, self.leaves)]
        sizes = {x.size(d) for x, d in zip(self.leaves, self.dims) if d is not None}
        if not sizes:
            raise ValueError(f"{self.title}: expected at least one input to be mapped, got none")
        if len(sizes) > 1:
            raise ValueError(
                f"{self.title}: expected all tensors to have the same size in the mapped "
                f"dimension, got sizes {sorted(sizes)}"
            )
        self.size = sizes.pop()

    def _checked(self, dim: Any, leaf: Any) -> Optional[int]:
        if dim is None:
            return None
        if not isinstance(dim, int):
            raise ValueError(
                f"{self.title}: expected in_dims of ints and None, got {type(dim).__name__}"
            )
        if not isinstance(leaf, Tensor) and not _is_collection(leaf):
            raise ValueError(
                f"{self.title}: got in_dim={dim} for an input of type {type(leaf).__name__}: only "
                "tensors can be mapped, use None for others"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{self.title}: expected -{leaf.dim()} <= in_dim < {leaf.dim()} for an input of "
                f"{leaf.dim()} dimensions, got {dim}"
            )
        return dim % leaf.dim()

    def samples(self) -> List[Tuple[Any, ...]]:
        """The arguments of each call."""
        columns = [_slices(x, d, self.size) for x, d in zip(self.leaves, self.dims)]
        return [self.spec.unflatten(row) for row in zip(*columns)]

    def example(self) -> Tuple[Any, ...]:
        """Arguments like those of a sample, for a batch of none."""
        return self.spec.unflatten(
            x if d is None else x.new_zeros((*x.shape[:d], *x.shape[d + 1 :]))
            for x, d in zip(self.leaves, self.dims)
        )


def _slices(value: Any, dim: Optional[int], size: int) -> List[Any]:
    """The value of one argument for each sample."""
    if dim is None:
        return [value] * size
    if _is_collection(value) or (value.requires_grad and _C.is_grad_enabled()):
        return list(value.unbind(dim))  # one node for all
    return [value.select(dim, i) for i in range(size)]  # views that may be written to


# ---- results ----


class _Collector:
    """The results of the samples, and how they become those of the batch."""

    def __init__(self, func: Callable, out_dims: Dims) -> None:
        self.title = _title(func, f"out_dims={out_dims}")
        self.out_dims = out_dims
        self.spec: Optional[TreeSpec] = None
        self.dims: List[Optional[int]] = []
        self.columns: List[List[Any]] = []

    def _begin(self, result: Any, leaves: List[Any], spec: TreeSpec) -> None:
        self.spec = spec
        if isinstance(self.out_dims, (int, tuple, list, dict)) or self.out_dims is None:
            dims = _broadcast_to_and_flatten(self.out_dims, spec, lambda tree: tree is None)
        else:
            raise ValueError(
                f"{self.title}: expected out_dims to be an int, None or a collection of ints, got "
                f"{type(self.out_dims).__name__}"
            )
        if dims is None:
            raise ValueError(
                f"{self.title}: expected out_dims of the structure of the outputs, {spec}, got "
                f"{tree_structure(self.out_dims)}"
            )
        for dim, leaf in zip(dims, leaves):
            if dim is not None and not isinstance(dim, int):
                raise ValueError(
                    f"{self.title}: expected out_dims of ints and None, got {type(dim).__name__}"
                )
            if dim is not None and not isinstance(leaf, Tensor) and not _is_collection(leaf):
                raise ValueError(
                    f"{self.title}: expected the function to return only Tensors, got "
                    f"{type(leaf).__name__}; out_dims may be None for such an output"
                )
        self.dims, self.columns = dims, [[] for _ in leaves]

    def add(self, result: Any) -> None:
        leaves, spec = tree_flatten(result, is_leaf=_is_collection)
        if self.spec is None:
            self._begin(result, leaves, spec)
        elif spec != self.spec:
            raise ValueError(
                f"{self.title}: expected outputs of the same structure for every sample, got "
                f"{self.spec} and {spec}"
            )
        for column, leaf in zip(self.columns, leaves):
            column.append(leaf)

    def result(self, size: int) -> Any:
        assert self.spec is not None
        return self.spec.unflatten(
            self._whole(column, dim, size) for column, dim in zip(self.columns, self.dims)
        )

    def _whole(self, column: List[Any], dim: Optional[int], size: int) -> Any:
        first = column[0]
        if dim is None:
            if isinstance(first, Tensor) and not all(
                other is first or _C.equal(other, first) for other in column
            ):
                raise ValueError(
                    f"{self.title}: expected an output that is the same for every sample where "
                    "out_dims is None, got one that differs"
                )
            return first
        if not -first.dim() - 1 <= dim <= first.dim():
            raise IndexError(
                f"{self.title}: Dimension out of range (expected to be in range of "
                f"[{-first.dim() - 1}, {first.dim()}], but got {dim})"
            )
        if size == 0:
            where = dim % (first.dim() + 1)
            return first.new_zeros((*first.shape[:where], 0, *first.shape[where:]))
        return _C.stack(column, dim)


# ---- random numbers ----


class Randomness:
    """The rule for random operators in the samples: an error, the same numbers, or others."""

    def __init__(self, op: str, mode: str) -> None:
        if mode not in ("error", "different", "same"):
            raise RuntimeError(
                f"{op}: expected randomness to be 'error', 'different' or 'same', got {mode!r}"
            )
        self.op, self.mode = op, mode
        self.state: Any = None if mode == "different" else random.get_rng_state()

    def before_sample(self) -> None:
        if self.mode == "same":
            random.set_rng_state(self.state)

    def after_sample(self) -> None:
        if self.mode == "error" and not _C.equal(random.get_rng_state(), self.state):
            raise RuntimeError(
                f"{self.op}: called random operation while in randomness error mode; use another "
                f"randomness, or draw the numbers outside of {self.op}"
            )


def vmap(
    func: Callable,
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: Optional[int] = None,
) -> Callable:
    """A function that calls `func` for each sample of a batch, and stacks what it returns.

    `in_dims` says along which dimension each argument is mapped, None for one that every sample
    gets whole; `out_dims` where the batch goes in each output. Both are an int for all, or trees
    that begin as the arguments and outputs do. Keyword arguments are not mapped. `randomness`:
    "error" forbids random operators, "same" draws the same numbers for every sample, "different"
    others. `chunk_size` does not change the result. ValueError for what does not fit.
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: expected chunk_size > 0 or None, got {chunk_size}")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        draws = Randomness("vmap", randomness)
        batch, outputs = _Batch(func, in_dims, args), _Collector(func, out_dims)
        if batch.size == 0:
            with no_grad():
                outputs.add(func(*batch.example(), **kwargs))
            return outputs.result(0)
        for sample in batch.samples():
            draws.before_sample()
            in_vmap.depth += 1
            try:
                outputs.add(func(*sample, **kwargs))
            finally:
                in_vmap.depth -= 1
            draws.after_sample()
        return outputs.result(batch.size)

    return wrapper


__all__ = ["vmap"]
