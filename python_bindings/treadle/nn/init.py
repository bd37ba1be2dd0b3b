"""Initial values of parameters: each function fills a tensor in place and returns it.

Example:

    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, Callable, Optional, Union

from treadle import _C, special
from treadle._C import Generator, Tensor
from treadle.autograd.grad_mode import no_grad

_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
)


def calculate_gain(nonlinearity: str, param: Union[int, float, None] = None) -> float:
    """The factor by which a nonlinearity's input should be larger so that its output keeps its
    variance."""
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3.0
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        if isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1.0 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Optional[Generator] = None
) -> Tensor:
    """Uniform over [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Optional[Generator] = None
) -> Tensor:
    """Normal with the given mean and standard deviation."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Optional[Generator] = None,
) -> Tensor:
    """Normal, restricted to [a, b], which may lie anywhere: drawn again until it is within, or,
    where that would take long, by the inverse of the distribution function."""
    if not a < b:
        raise ValueError(f"trunc_normal_: expected a < b, got a = {a}, b = {b}")
    if not 0 < std < math.inf or not math.isfinite(mean):
        raise ValueError(
            f"trunc_normal_: expected a finite mean and std > 0, got mean = {mean}, std = {std}"
        )
    if not tensor.dtype.is_floating_point:
        raise ValueError(f"trunc_normal_: expected a floating-point tensor, got {tensor.dtype}")
    low, high = (a - mean) / std, (b - mean) / std
    with no_grad():
        if math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)) > 1:  # half of all
            return _normal_within(tensor, mean, std, a, b, generator)
        wide = _C.empty(tensor.shape, dtype=_C.float64, device=tensor.device)
        _standard_normal_within(wide, low, high, generator)
        tensor.copy_(wide.mul_(std).add_(mean))
        return tensor.clamp_(min=a, max=b)


def _normal_within(
    out: Tensor, mean: float, std: float, a: float, b: float, generator: Optional[Generator]
) -> Tensor:
    """Fill a tensor with normal numbers from [a, b], which most of them are in."""
    out.normal_(mean, std, generator=generator)
    while True:
        outside = (out < a) | (out > b)
        count = int(outside.sum())
        if count == 0:
            return out
        again = _C.empty(count, dtype=out.dtype, device=out.device)
        out.masked_scatter_(outside, again.normal_(mean, std, generator=generator))


# Beyond this many standard deviations the tail's probability is no normal number of float64.
_FAR = 37.0


def _standard_normal_within(
    out: Tensor, low: float, high: float, generator: Optional[Generator]
) -> Tensor:
    """Fill a float64 tensor with standard normal numbers from [low, high]."""
    if low > 0:
        # The lower tail, where probabilities keep their digits, is the mirror image of the upper.
        return _standard_normal_within(out, -high, -low, generator).neg_()
    if high < -_FAR:
        # Here exp(-x * x / 2) is the density of sqrt(high^2 + 2 e), e exponential, to 1 / x^2.
        width = (high - low) * (-high - low) / 2
        exponential = out.uniform_(0, 1, generator=generator).mul_(math.expm1(-width)).log1p_()
        return out.copy_(exponential.mul(-2).add_(high * high).sqrt_().neg_())
    below, above = (math.erfc(-x / math.sqrt(2)) / 2 for x in (low, high))
    out.uniform_(below, above, generator=generator)
    return out.copy_(special.ndtri(out))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """The same value everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """One everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zero everywhere."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1.0)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that hands its input on unchanged, as far as it has channels."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1.0
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs feed one output of a weight, and how many outputs one input feeds."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Optional[Generator] = None
) -> Tensor:
    """Uniform with variance 2 / (fan_in + fan_out), times gain squared."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: Optional[Generator] = None
) -> Tensor:
    """Normal with variance 2 / (fan_in + fan_out), times gain squared."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def _nothing_to_fill(tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Optional[Generator] = None,
) -> Tensor:
    """Uniform with variance gain squared / fan, so that the nonlinearity keeps the variance."""
    if _nothing_to_fill(tensor):
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Optional[Generator] = None,
) -> Tensor:
    """Normal with variance gain squared / fan, so that the nonlinearity keeps the variance."""
    if _nothing_to_fill(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Optional[Generator] = None) -> Tensor:
    """Rows (or columns, whichever are fewer) of unit length at right angles to each other, times
    gain."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with no_grad():
        random = _C.empty((max(rows, columns), min(rows, columns)), dtype=_C.float64)
        basis = _orthonormal_columns(random.normal_(0.0, 1.0, generator=generator))
        if rows < columns:
            basis = basis.transpose(0, 1)
        tensor.copy_(basis.reshape(tensor.shape))
        return tensor.mul_(gain)


def _orthonormal_columns(matrix: Tensor) -> Tensor:
    """Gram and Schmidt's method; the second pass removes what rounding left of the first."""
    for column in range(matrix.shape[1]):
        vector = matrix.select(1, column).unsqueeze(1)
        if column:
            before = matrix.narrow(1, 0, column)
            for _ in range(2):
                vector.sub_(before.matmul(before.transpose(0, 1).matmul(vector)))
        vector.div_((vector * vector).sum().sqrt())
    return matrix


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Optional[Generator] = None
) -> Tensor:
    """Normal, but zero in the share `sparsity` of the rows of each column, chosen by chance."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = _C.randperm(rows, generator=generator)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _old_name(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The name that a function had before those that write in place ended in an underscore."""
    name = function.__name__

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{name[:-1]} is now deprecated in favor of nn.init.{name}.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    renamed.__name__ = name[:-1]
    renamed.__doc__ = f"The old name of :func:`{name}`."
    return renamed


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)

# Packages with initial values of their own take these from here.
_no_grad_fill_ = constant_
_no_grad_normal_ = normal_
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_uniform_ = uniform_
_no_grad_zero_ = zeros_
