"""Lazy layers: the sizes of the input are read off the first one, and the parameters are made then.

    layer = nn.LazyLinear(10)
    layer(treadle.ones((2, 7)))      # now a Linear(in_features=7, out_features=10)

A lazy layer is its plain layer with uninitialized parameters. Before the first forward it takes the
shapes from the input, makes the parameters, and becomes the plain layer. Loading a state dictionary
makes them too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from treadle import _C
from treadle._C import Tensor

from ..uninitialized import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    _Mixed = Module  # what the mixin is mixed with
else:
    _Mixed = object


class LazyModuleMixin(_Mixed):
    """The behaviour of a lazy layer until its parameters exist. A subclass makes them in
    `initialize_parameters(input)`."""

    cls_to_become: Optional[type] = None

    if TYPE_CHECKING:  # uninitialized, then what the layer has
        weight: Any
        bias: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(
            LazyModuleMixin._lazy_load_hook, with_module=True
        )
        self._initialize_hook = self.register_forward_pre_hook(
            LazyModuleMixin._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters shapes that fit the input."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still waits for its shape."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(self, args: tuple, kwargs: Optional[dict] = None) -> None:
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def _lazy_load_hook(self, state_dict: dict, prefix: str, *others: Any) -> None:
        """Loaded tensors give the shapes."""
        for name, own in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if is_lazy(own) and isinstance(given, Tensor) and not is_lazy(given):
                own.materialize(tuple(given.shape))

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, own in (*self._parameters.items(), *self._buffers.items()):
            if is_lazy(own) and prefix + name in destination:
                destination[prefix + name] = own

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *others: Any) -> None:
        """A parameter that is lazy in the dictionary, too, stays as it is."""
        lazy = {key for key, value in state_dict.items() if is_lazy(value)}
        held = {}
        for holder in (self._parameters, self._buffers):
            for name, own in list(holder.items()):
                if is_lazy(own) and prefix + name in lazy:
                    held[name] = (holder, own)
                    holder[name] = None
        rest = {k: v for k, v in state_dict.items() if k[len(prefix) :] not in held}
        try:
            super()._load_from_state_dict(rest, prefix, *others)
        finally:
            for name, (holder, own) in held.items():
                holder[name] = own


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear layer that reads in_features off its first input."""

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    """A convolution that reads in_channels off its first input."""

    def __init__(
        self,
        out_channels: int,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        wants_bias = kwargs.pop("bias", None)
        if wants_bias is None:
            # After kernel_size: stride, padding, and dilation or output_padding, then groups, bias.
            wants_bias = args[5] if len(args) > 5 else True
            args = (*args[:5], False, *args[6:]) if len(args) > 5 else args
        if len(args) <= 5:
            kwargs["bias"] = False
        super().__init__(0, 0, *args, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if wants_bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]  # of the layer

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if self.has_uninitialized_params():
            self.in_channels = self._channels_of(input)
            if self.in_channels % self.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            first, second = (
                (self.in_channels, self.out_channels)
                if self.transposed
                else (self.out_channels, self.in_channels)
            )
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        if self.in_channels == 0:
            per_group = 1 if self.transposed else self.groups
            self.in_channels = self.weight.shape[0 if self.transposed else 1] * per_group

    def _channels_of(self, input: Tensor) -> int:
        dims = self._dims
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        return input.shape[-dims - 1]


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that reads in_channels off its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that reads in_channels off its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that reads in_channels off its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """A ConvTranspose1d that reads in_channels off its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """A ConvTranspose2d that reads in_channels off its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """A ConvTranspose3d that reads in_channels off its first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin, _NormBase):
    """A batch or instance normalisation that reads num_features off its first input. Unlike the
    plain instance normalisation it has parameters and running statistics unless told otherwise."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device=device, dtype=dtype)
        options = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = _C.tensor(0, dtype=_C.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            names: tuple[str, ...] = ("weight", "bias") if self.affine else ()
            names = tuple(name for name in names if getattr(self, name) is not None)
            if self.track_running_stats:
                names = (*names, "running_mean", "running_var")
            for name in names:
                getattr(self, name).materialize((self.num_features,))
            self.reset_parameters()
        if self.num_features == 0:
            holder = self.weight if self.affine else self.running_mean
            self.num_features = input.shape[1] if holder is None else holder.shape[0]


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d that reads num_features off its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d that reads num_features off its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d that reads num_features off its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d that reads num_features off its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d that reads num_features off its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d that reads num_features off its first input."""

    cls_to_become = InstanceNorm3d
