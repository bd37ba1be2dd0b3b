"""Types of results by the types of arguments, where sizes may be Dyn: any size.

    broadcast_types(TensorType((1, 2)), TensorType((3, Dyn)))     # (3, 2) and (3, Dyn)

Each raises TypeError for types that do not fit.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, List, Tuple

from treadle.fx.experimental.unification import Var
from treadle.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise


def expand_to_tensor_dim(t: Any, n: int) -> TensorType:
    """The type as one of `n` sizes: Dyn becomes `n` sizes of Dyn."""
    if t == Dyn:
        return TensorType((Dyn,) * n)
    if not isinstance(t, TensorType) or len(t.__args__) != n:
        raise TypeError(f"expected a type of {n} sizes, got {t}")
    return t


def broadcast_types(t1: Any, t2: Any) -> Tuple[Any, Any]:
    """Both types with the sizes that broadcasting gives them: missing ones in front, and those of
    1, become those of the other."""
    if any(t == Dyn or isinstance(t, Var) for t in (t1, t2)):
        return t1, t2
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        raise TypeError(f"broadcast: expected types of tensors, got {t1} and {t2}")
    count = max(len(t1.__args__), len(t2.__args__))
    ones, others = ([1] * (count - len(t.__args__)) + list(t.__args__) for t in (t1, t2))
    first = tuple(b if a == 1 else a for a, b in zip(ones, others))
    second = tuple(a if b == 1 else b for a, b in zip(ones, others))
    return TensorType(first), TensorType(second)


def get_greatest_upper_bound(type1: Any, type2: Any) -> Any:
    """The most precise type that is consistent with both: known sizes in place of Dyn."""
    if type1 == Dyn:
        return type2
    if type2 == Dyn:
        return type1
    if not is_consistent(type1, type2):
        raise TypeError(f"expected types of the same sizes, got {type1} and {type2}")
    if not (isinstance(type1, TensorType) and isinstance(type2, TensorType)):
        return type1
    pairs = zip(type1.__args__, type2.__args__)
    return TensorType(tuple(a if is_more_precise(a, b) else b for a, b in pairs))


def _at(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, (tuple, list)) else value


def calculate_out_dimension(d_in: Any, module_instance: Any, index: int) -> Any:
    """The size of what a convolution or pool makes of a size: of the height where `index` is 0, of
    the width where it is 1. `d_in` is a number, a symbol of sympy or Dyn."""
    if d_in == Dyn:
        return d_in
    if isinstance(d_in, (str, float)) or not hasattr(d_in, "__floordiv__"):
        raise TypeError(f"{module_instance}: expected a size that is a number or Dyn, got {d_in!r}")
    padding = module_instance.padding
    if padding == "same":
        return d_in
    padding = 0 if padding == "valid" else _at(padding, index)
    kernel, stride = _at(module_instance.kernel_size, index), _at(module_instance.stride, index)
    room = d_in + 2 * padding - _at(module_instance.dilation, index) * (kernel - 1) - 1
    if not getattr(module_instance, "ceil_mode", False):
        return room // stride + 1
    size = -(-room // stride) + 1
    # The last window has to begin inside of what there is.
    starts_outside = isinstance(d_in, int) and (size - 1) * stride >= d_in + padding
    return size - 1 if starts_outside else size


def _spatial(what: Any, tensor_type: TensorType) -> List[Any]:
    sizes = list(tensor_type.__args__)
    if len(sizes) not in (3, 4):
        raise TypeError(f"{what}: expected a type of 3 or 4 sizes, got {tensor_type}")
    return sizes


def maxpool2d_check(typ: TensorType, module_instance: Any) -> TensorType:
    """The type of what a MaxPool2d makes of a tensor of 3 or 4 sizes."""
    *others, height, width = _spatial(module_instance, typ)
    ends = (calculate_out_dimension(d, module_instance, i) for i, d in enumerate((height, width)))
    return TensorType((*others, *ends))


def adaptiveavgpool2d_check(tensor_type: TensorType, module_instance: Any) -> TensorType:
    """The type of what an AdaptiveAvgPool2d makes of a tensor of 3 or 4 sizes."""
    *others, height, width = _spatial(module_instance, tensor_type)
    wanted = [_at(module_instance.output_size, i) for i in (0, 1)]
    ends = (d if size is None else size for d, size in zip((height, width), wanted))
    return TensorType((*others, *ends))


def linear_check(tensor_type: TensorType, module_instance: Any) -> TensorType:
    """The type of what a Linear makes of a tensor of at least 2 sizes."""
    sizes = tensor_type.__args__
    if len(sizes) < 2:
        text = f"expected a type of at least 2 sizes, got {tensor_type}"
        raise TypeError(f"{module_instance}: {text}")
    if not is_consistent(module_instance.in_features, sizes[-1]):
        raise TypeError(
            f"{module_instance}: expected a last size of {module_instance.in_features}, "
            f"got {tensor_type}"
        )
    return TensorType((*sizes[:-1], module_instance.out_features))


def flat_range(tensor_type: TensorType, start_dim: int, end_dim: int) -> Tuple[int, int]:
    """The first of the sizes that flatten joins, and the one after the last."""
    count = len(tensor_type.__args__)
    start, end = (d + count if d < 0 else d for d in (start_dim, end_dim))
    if not 0 <= start <= end < count:
        raise TypeError(f"flatten: expected sizes {start_dim} to {end_dim}, got {tensor_type}")
    return start, end + 1


def flatten_check(tensor_type: TensorType, start_dim: int, end_dim: int) -> TensorType:
    """The type of what flatten makes of a tensor: Dyn where one of the sizes it joins is Dyn."""
    start, end = flat_range(tensor_type, start_dim, end_dim)
    sizes = tuple(tensor_type.__args__)
    joined = Dyn if Dyn in sizes[start:end] else math.prod(sizes[start:end])
    return TensorType((*sizes[:start], joined, *sizes[end:]))
