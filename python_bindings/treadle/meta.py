"""Meta-operators: reading, combining and repeating the elements of a tensor by expressions of
their indices.

    y = treadle.meta.reindex(x, (4, 3), ["i0 + i1 - 1"])    # the windows of a vector, y[i, j]

Together with operators that compute element by element, and with sums, they make up convolution,
pooling, padding, rotations and much else, with gradients. Each function is also a method of
tensors.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Sequence

from treadle import _C
from treadle._C import Tensor

__all__ = ["broadcast", "reindex", "reindex_reduce"]

# As the operators have it: every expression with a mark after it, which none contains.
_END = ";"


def _joined(op: str, indices: Sequence[str]) -> str:
    if isinstance(indices, str) or not hasattr(indices, "__iter__"):
        raise TypeError(
            f"{op}: expected a list of expressions as indices, got {type(indices).__name__}"
        )
    indices = list(indices)
    for position, text in enumerate(indices):
        if not isinstance(text, str):
            raise TypeError(
                f"{op}: expected a text as indices[{position}], got {type(text).__name__}"
            )
        if _END in text:
            raise ValueError(
                f"{op}: expected one expression as indices[{position}], got {text[:80]!r}"
            )
    return "".join(text + _END for text in indices)


def reindex(
    x: Tensor, shape: Sequence[int], indices: Sequence[str], overflow_value: Any = 0
) -> Tensor:
    """A tensor `y` of the given shape with ``y[i0, i1, ...] = x[indices[0], indices[1], ...]``.

    `indices` has one expression for each dimension of `x`. Where an index is outside of `x`, the
    element of `y` is `overflow_value`. Negative indices are outside. The result has the dtype of
    `x`, which may be any, and is a copy.

    An expression consists of integers, ``+ - * // %``, parentheses and these names:

    - ``i0``, ``i1``, ...: the indices in `y`;
    - ``yshape0``, ``yshape1``, ...: the sizes of `y`;
    - ``xshape0``, ``xshape1``, ...: the sizes of `x`.

    ``//`` (or ``/``, which is the same) rounds down and ``%`` has the sign of the divisor, as in
    Python. Values are integers of 64 bits. If an index, or a value from which it is computed, does
    not fit, the element is outside.

    The gradient of `x` is ``reindex_reduce(grad, "sum", x.shape, indices)``.

    ValueError: an expression that cannot be read, another number of expressions than `x` has
    dimensions, and a divisor that is 0 for some element. RuntimeError: a negative size; a size
    beyond what memory can have; an `overflow_value` that the dtype of `x` cannot hold.

    Example::

        >>> x = treadle.arange(6).reshape(2, 3)
        >>> treadle.meta.reindex(x, (2, 4), ["i0", "i1 - 1"], overflow_value=9)
        tensor([[9, 0, 1, 2],
                [9, 3, 4, 5]])
    """
    return _C._meta.reindex(x, shape, _joined("reindex", indices), overflow_value)


def reindex_reduce(y: Tensor, op: str, shape: Sequence[int], indices: Sequence[str]) -> Tensor:
    """A tensor `x` of the given shape in which the elements of `y` are combined: for each element,
    ``x[indices[0], ...] = op(x[indices[0], ...], y[i0, i1, ...])``.

    `indices` has one expression for each dimension of `shape`; :func:`reindex` says what it may
    contain. The sizes of `y` are ``yshape0, ...``, and those of the result ``xshape0, ...``.
    Elements of `y` whose index is outside of the result take no part.

    An element of the result begins with what changes nothing:

    ================  ===========================================================
    ``sum``           0
    ``prod``          1
    ``max``           minus infinity, or the lowest value of an integer dtype
    ``min``           infinity, or the highest value of an integer dtype
    ``logical_and``   True
    ``logical_or``    False
    ================  ===========================================================

    The result has the dtype of `y`; of the two logical operations it is bool. Complex dtypes have
    no maximum and no minimum. Elements are combined in the order of their indices in `y`, so that
    the result has the same bits at any number of threads. Sums and products of integers wrap.

    The gradient of a sum is ``reindex(grad, y.shape, indices)``. Elements that are the same maximum
    or minimum share the gradient equally. The logical operations have no gradient.

    ValueError: as of :func:`reindex`. RuntimeError: another `op`; a negative size; a size beyond
    what memory can have; the maximum or minimum of a complex dtype.

    Example::

        >>> y = treadle.tensor([3, 1, 4, 1, 5])
        >>> treadle.meta.reindex_reduce(y, "max", (3,), ["i0 // 2"])
        tensor([3, 4, 5])
    """
    return _C._meta.reindex_reduce(y, op, shape, _joined("reindex_reduce", indices))


def broadcast(x: Tensor, shape: Sequence[int], dims: Sequence[int]) -> Tensor:
    """A view of `x` with the given shape, repeated along the dimensions `dims` of `shape`.

    The dimensions of `x` are the others, in their order. A dimension of size 1 is repeated, too.
    `x` may have any dtype.

    ValueError: `dims` and the dimensions of `x` are not together as many as `shape` has; a size
    that is neither 1 nor that of `shape`. IndexError: a dimension that `shape` does not have.
    RuntimeError: the same dimension twice; a negative size.

    Example::

        >>> treadle.meta.broadcast(treadle.tensor([1, 2]), (3, 2), dims=(0,))
        tensor([[1, 2],
                [1, 2],
                [1, 2]])
    """
    return _C._meta.broadcast(x, shape, dims)
