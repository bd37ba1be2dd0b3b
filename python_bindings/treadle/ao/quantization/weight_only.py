"""Weight-only quantization: linear layers whose weights have 8 or 4 bits, for language models.

Example:

    model = Transformer(...).bfloat16().eval()
    quantize_(model, Int4WeightOnlyConfig(group_size=128))
    treadle.save(model.state_dict(), "int4.pt")

A layer with few rows of input takes as long as reading its weights, which are smaller by a factor
of 2 or almost 4 than those of bfloat16. Activations keep their dtype. The weights get no gradient,
nor does the input.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Union

from treadle import _C, nn
from treadle._C import Tensor

GROUP_SIZES = (32, 64, 128, 256)
_ROWS = 16  # of packed int4 weights, in whole blocks
_DTYPES = (_C.float32, _C.bfloat16, _C.float16)


@dataclass(frozen=True)
class Int8WeightOnlyConfig:
    """Weights of 8 bits, with one scale for each output feature."""


@dataclass(frozen=True)
class Int4WeightOnlyConfig:
    """Weights of 4 bits, with a scale and a zero for each group of weights of an output feature.

    group_size: 32, 64, 128 or 256, a divisor of in_features. ValueError for others.
    """

    group_size: int = 128

    def __post_init__(self) -> None:
        if self.group_size not in GROUP_SIZES:
            raise ValueError(
                f"Int4WeightOnlyConfig: expected group_size to be one of {GROUP_SIZES}, got "
                f"{self.group_size!r}"
            )


Config = Union[Int8WeightOnlyConfig, Int4WeightOnlyConfig]


class _WeightOnlyLinear(nn.Module):
    """What both linear layers share: sizes, the bias, any number of leading dimensions."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.register_parameter("bias", linear.bias)
        self.train(linear.training)

    def _product(self, rows: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """`input @ weight.T + bias`: input (..., in_features), in the dtype of the scales."""
        if input.dim() == 0 or input.shape[-1] != self.in_features:
            raise RuntimeError(
                f"{type(self).__name__}: expected input of shape (..., {self.in_features}), got "
                f"{tuple(input.shape)}"
            )
        product = self._product(input.reshape(math.prod(input.shape[:-1]), self.in_features))
        product = product.reshape(*input.shape[:-1], self.out_features)
        return product if self.bias is None else product + self.bias

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def _wide_weight(linear: nn.Linear) -> Tensor:
    weight = linear.weight.detach()
    if weight.dtype not in _DTYPES:
        raise ValueError(
            "quantize_: expected weights of dtype float32, bfloat16 or float16, got "
            f"{str(weight.dtype).partition('.')[2]}"
        )
    weight = weight.to(_C.float32)
    if not weight.is_meta and not bool(weight.isfinite().all()):
        raise ValueError("quantize_: expected finite weights, got infinities or NaN")
    return weight


class Int8WeightOnlyLinear(_WeightOnlyLinear):
    """A linear layer with weights of 8 bits.

    Its state: `weight` (out_features, in_features) of int8, `scales` (out_features) in the dtype of
    the layer it is made from, and `bias`. The largest weight of a row is 127 scales. ValueError for
    a layer of another dtype than float32, bfloat16 and float16, and for infinite weights.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear)
        weight = _wide_weight(linear)
        largest = weight.abs().amax(1) if self.in_features else weight.new_zeros(self.out_features)
        scales = (largest / 127).to(linear.weight.dtype)
        step = scales.to(_C.float32)
        step = _C.where(step > 0, step, _C.ones_like(step))
        self.register_buffer(
            "weight", (weight / step[:, None]).round().clamp(-128, 127).to(_C.int8)
        )
        self.register_buffer("scales", scales)

    def _product(self, rows: Tensor) -> Tensor:
        return _C._weight_int8pack_mm(rows, self.weight, self.scales)


class Int4WeightOnlyLinear(_WeightOnlyLinear):
    """A linear layer with weights of 4 bits.

    Its state: `weight`, the packed numbers, as bytes (n, in_features / 2), where n is out_features
    rounded up to a multiple of 16; `scales_and_zeros` (in_features / group_size, n, 2) in the dtype
    of the layer it is made from; and `bias`. The numbers of a group are evenly spaced from its
    smallest weight to its largest. ValueError as for Int8WeightOnlyLinear, and for in_features that
    group_size does not divide.
    """

    def __init__(self, linear: nn.Linear, group_size: int = 128) -> None:
        super().__init__(linear)
        self.group_size = Int4WeightOnlyConfig(group_size).group_size
        if self.in_features % group_size:
            raise ValueError(
                f"Int4WeightOnlyLinear: expected in_features in multiples of group_size = "
                f"{group_size}, got {self.in_features}"
            )
        weight = nn.functional.pad(_wide_weight(linear), (0, 0, 0, -self.out_features % _ROWS))
        groups = weight.unflatten(1, (self.in_features // group_size, group_size))
        low, high = groups.amin(2), groups.amax(2)
        dtype = linear.weight.dtype
        scale = ((high - low) / 15).to(dtype)
        step = scale.to(_C.float32)
        zero = (low + 8 * step).to(dtype)
        safe = _C.where(step > 0, step, _C.ones_like(step))
        # From the rounded scale and zero, with which the product is computed.
        numbers = ((groups - zero.to(_C.float32)[:, :, None]) / safe[:, :, None] + 8).round()
        numbers = numbers.clamp(0, 15).to(_C.int32).reshape(len(weight), self.in_features)
        self.register_buffer("weight", _C._convert_weight_to_int4pack_for_cpu(numbers, 1))
        self.register_buffer(
            "scales_and_zeros", _C.stack((scale, zero), 2).transpose(0, 1).contiguous()
        )

    def _product(self, rows: Tensor) -> Tensor:
        product = _C._weight_int4pack_mm_for_cpu(
            rows, self.weight, self.group_size, self.scales_and_zeros
        )
        return product[:, : self.out_features]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, group_size={self.group_size}"


def _is_linear(module: nn.Module, _: str) -> bool:
    return type(module) is nn.Linear


def _converted(linear: nn.Linear, config: Config) -> _WeightOnlyLinear:
    if isinstance(config, Int8WeightOnlyConfig):
        return Int8WeightOnlyLinear(linear)
    return Int4WeightOnlyLinear(linear, config.group_size)


def quantize_(
    model: nn.Module,
    config: Config,
    filter_fn: Optional[Callable[[nn.Module, str], bool]] = None,
) -> None:
    """Replaces linear layers of `model` by layers whose weights have 8 or 4 bits.

    filter_fn: called with a module and its name in the model; chooses the layers. By default they
    are all modules of class Linear. To load quantized weights, quantize a model of the same kind,
    then call load_state_dict. A layer that stands in the model twice is quantized once. A parameter
    that a layer shares with another module (an embedding, say) is not shared any more.

    If a layer cannot be quantized, no layer is replaced. TypeError for another config, and if
    filter_fn chooses a module that is not a Linear. ValueError for a layer that does not fit: its
    name is in the message.
    """
    if not isinstance(config, (Int8WeightOnlyConfig, Int4WeightOnlyConfig)):
        raise TypeError(
            "quantize_: expected config to be an Int8WeightOnlyConfig or an Int4WeightOnlyConfig, "
            f"got {type(config).__name__}"
        )
    chosen = filter_fn or _is_linear
    made: Dict[int, Any] = {}
    places = []
    for name, module in model.named_modules(remove_duplicate=False):
        if not chosen(module, name):
            continue
        if not isinstance(module, nn.Linear) or not name:
            raise TypeError(
                "quantize_: expected filter_fn to choose layers of class Linear inside of the "
                f"model, got {type(module).__name__} {name!r}"
            )
        if id(module) not in made:
            try:
                made[id(module)] = _converted(module, config)
            except ValueError as error:
                raise ValueError(
                    f"{error}, in {name!r}; filter_fn can leave this layer out"
                ) from error
        places.append((name, made[id(module)]))
    for name, layer in places:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, layer)
