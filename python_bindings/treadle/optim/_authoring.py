"""Parts of optimisers outside of the package, under the names they know from PyTorch's: decorators
of `step`, choices between implementations, types and texts.

    class Mine(Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None): ...
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, Optional, Union

from treadle import _C
from treadle._C import Tensor
from treadle._jit_internal import is_scripting
from treadle.autograd.grad_mode import set_grad_enabled
from treadle.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _supported_types,
)

ParamsT = Union[Iterable[Tensor], Iterable[dict[str, Any]], Iterable[tuple[str, Tensor]]]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
StateDict = dict[str, Any]
Indices = list[int]
DeviceDict = dict[Optional[_C.device], Tensor]
DeviceDtypeDict = dict[Optional[tuple[_C.device, _C.dtype]], Tensor]
TensorListList = list[list[Optional[Tensor]]]
GlobalOptimizerPreHook = Callable[[Any, Args, Kwargs], Optional[tuple[Args, Kwargs]]]
GlobalOptimizerPostHook = Callable[[Any, Args, Kwargs], None]


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """Let `step` record gradients where the optimiser is `differentiable`, and only there."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach): which implementation suits these parameters best."""
    if is_scripting() or differentiable:
        return False, False

    def all_on(devices: list[str], fits: Callable[[Tensor], bool]) -> bool:
        return all(p is None or (fits(p) and p.device.type in devices) for p in params)

    fused_devices = _get_fused_kernels_supported_devices()
    fused = use_fused and all_on(
        fused_devices, lambda p: type(p) in _supported_types() and p.is_floating_point()
    )
    devices = _get_foreach_kernels_supported_devices()
    foreach = not fused and all_on(devices, lambda p: type(p) in _supported_types())
    return fused, foreach


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Complain of a parameter that no fused step takes."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if not (p.device.type in devices and p.is_floating_point()):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _get_value(x: Union[float, Tensor]) -> float:
    """A setting as a number."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Union[float, Tensor]) -> Union[float, Tensor]:
    """A tensor of one element without dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """The values as they are, since nothing is compiled here."""
    return x


def _get_scalar_dtype(is_fused: Optional[bool] = None) -> _C.dtype:
    """The dtype of a number of steps."""
    wide = _C.get_default_dtype() == _C.float64 and not is_fused
    return _C.float64 if wide else _C.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose steps can be captured as graphs."""
    return ["cuda", "xpu", "hpu", "privateuseone"] + (["xla"] if supports_xla else [])


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put pairs of reals in the place of complex tensors, in all lists."""
    for place, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[place] = _C.view_as_real(tensors[place])


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Optional[Callable] = None,
) -> Callable[[Callable], Callable]:
    """A decorator that leaves a function as it is."""
    return lambda func: func


_params_doc = """params (iterable): parameters, pairs of a name and a parameter, or dicts that each
            define a group of parameters"""
_foreach_doc = """foreach (bool, optional): step by operators over lists of tensors; the numbers are
            the same (default: None)"""
_fused_doc = """fused (bool, optional): step by one native call; the numbers are the same
            (default: None)"""
_capturable_doc = """capturable (bool, optional): keep the step safe to capture as a graph
            (default: False)"""
_differentiable_doc = """differentiable (bool, optional): let gradients flow through the step
            (default: False)"""
_maximize_doc = """maximize (bool, optional): make the objective large instead of small
            (default: False)"""
