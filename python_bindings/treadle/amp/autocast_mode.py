"""The context autocast, and what makes a custom autograd function heed it.

    with treadle.autocast("cpu", dtype=treadle.bfloat16):
        y = x @ w                 # bfloat16, whatever x and w are
        loss = mse_loss(y, t)     # float32

It holds for the thread that entered it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Literal, Optional

import numpy as np

from treadle import _C, _names
from treadle._C import Tensor
from treadle.amp import _state

_CPU_DTYPES = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a type of device: for all but the meta device."""
    return _C.device(device_type).type != "meta"


class autocast:  # noqa: N801
    """A context, and a decorator, in which operators choose the dtype they run in.

    device_type: "cpu", "cuda" or another type of device; tensors elsewhere are left alone.
    dtype: the 16-bit dtype; None is what get_autocast_dtype gives: bfloat16 on the CPU, what its
        backend says for a device from outside.
    enabled: False makes a region, within another, where operators run as they are called.
    cache_enabled: whether the 16-bit copy of a weight is kept until the outermost context is left.

    RuntimeError for a device that has no autocast. A dtype that the device does not have here is
    warned of, and disables the context.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Optional[_C.dtype] = None,
        enabled: bool = True,
        cache_enabled: Optional[bool] = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = _state.get_autocast_dtype(device_type) if dtype is None else dtype
        if cache_enabled is None:
            cache_enabled = _C.is_autocast_cache_enabled()
        self._cache_enabled = cache_enabled
        self._enabled = enabled and self._is_possible()
        self._previous: list[tuple] = []  # one for each time it is entered

    def _is_possible(self) -> bool:
        """Whether the device can do it; says so where it cannot."""
        if self.device == "cuda" and not _names.package().cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=3,
            )
            return False
        supported = self._supported_dtypes()
        if supported is not None and self.fast_dtype not in supported:
            names, kind = ", ".join(map(str, supported)), self.device.upper()
            warnings.warn(
                f"In {kind} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{kind} Autocast only supports dtype of {names} currently.",
                stacklevel=3,
            )
            return False
        return True

    def _supported_dtypes(self) -> Optional[Sequence[_C.dtype]]:
        """The dtypes that the device can do it in; None where nobody says."""
        if self.device == "cpu":
            return _CPU_DTYPES
        if self.device in _C._backends():
            return _C._backend_facts(self.device)["autocast_dtypes"]
        return None

    def __enter__(self) -> "autocast":
        self._previous.append(
            (
                _state.is_autocast_enabled(self.device),
                _state.get_autocast_dtype(self.device),
                _C.is_autocast_cache_enabled(),
            )
        )
        _C.autocast_increment_nesting()
        self._set(self._enabled, self.fast_dtype, self._cache_enabled)
        return self

    def __exit__(self, *exc: Any) -> Literal[False]:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        self._set(*self._previous.pop())
        return False

    def _set(self, enabled: bool, dtype: _C.dtype, cache_enabled: bool) -> None:
        _state.set_autocast_enabled(self.device, enabled)
        _state.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache_enabled)

    def _clone(self) -> "autocast":
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__, _previous=[])
        return clone

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            # Its own context for each call: calls may be in several threads, or within each other.
            with self._clone():
                return function(*args, **kwargs)

        return wrapper


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """`func`, run within the context each time it is called."""
    return autocast_instance(func)


def _cast(value: Any, device_type: str, dtype: _C.dtype) -> Any:
    """The floating tensors in a value, but for float64, in `dtype`; containers are gone through."""
    if isinstance(value, Tensor):
        subject = value.is_floating_point() and value.device.type == device_type
        return value.to(dtype) if subject and value.dtype != _C.float64 else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(key, device_type, dtype): _cast(item, device_type, dtype)
            for key, item in value.items()
        }
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(
    fwd: Optional[Callable] = None,
    *,
    device_type: str,
    cast_inputs: Optional[_C.dtype] = None,
) -> Callable:
    """A decorator for `forward` of a custom autograd function.

    With `cast_inputs`, floating tensors come in that dtype, and the body runs with autocast
    disabled; without it, the body runs in the context it is called in. Does nothing outside
    autocast.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        enabled = _state.is_autocast_enabled(device_type)
        ctx._dtype = _state.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return wrapper


def custom_bwd(bwd: Optional[Callable] = None, *, device_type: str) -> Callable:
    """A decorator for `backward` of a custom autograd function, for which custom_fwd was used: the
    body runs in the context that `forward` ran in."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return wrapper
