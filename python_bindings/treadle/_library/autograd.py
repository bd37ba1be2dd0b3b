"""Derivatives and autocast rules that are registered from Python."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from treadle import _C
from treadle._introspection.schema import schema_of
from treadle._library.registration import below, caller
from treadle._ops import overload_named
from treadle.amp._state import is_autocast_enabled


def set_formula(
    name: str,
    backward: Optional[Callable],
    setup_context: Optional[Callable],
    place: Tuple[str, int],
    *,
    replace: bool = False,
) -> None:
    """Give an operator its derivative; None for one that raises in backward. `replace`: in place of
    the one that there is."""
    if backward is not None:
        _check_formula(name, backward, setup_context)
    _C._library_set_formula(name, backward, setup_context, replace, *place)


def _check_formula(name: str, backward: Callable, setup_context: Optional[Callable]) -> None:
    for what, function in (("backward", backward), ("setup_context", setup_context)):
        if function is not None and not callable(function):
            raise TypeError(
                f"register_autograd: expected {what} to be a function, got "
                f"{type(function).__name__}"
            )
    schema = schema_of(name)
    if schema.is_mutable or any(r.alias_info is not None for r in schema.returns):
        raise RuntimeError(
            "register_autograd: expected an operator that makes new tensors, got one that writes "
            f"to its arguments or returns them\n  {schema}"
        )
    if any(a.kwarg_only and a.type.startswith("Tensor") for a in schema.arguments):
        raise NotImplementedError(
            "register_autograd: expected tensors that are given by position, got some that are "
            f"given by name only\n  {schema}"
        )


class Casts:
    """The dtypes that autocast gives the tensors of one operator, by device."""

    _all: Dict[str, "Casts"] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtypes: Dict[str, _C.dtype] = {}

    @classmethod
    def of(cls, name: str) -> "Casts":
        """The one of an operator; made anew where the operator was."""
        found = cls._all.get(name)
        if found is None or not _C._library_has_autocast(name):
            found = cls._all[name] = cls(name)
        return found

    def add(self, device_type: str, dtype: _C.dtype) -> None:
        """Cast to `dtype` on the device. ValueError for a device without autocast."""
        if not isinstance(device_type, str):
            raise ValueError(
                "register_autocast: expected device_type to be a str, got "
                f"{type(device_type).__name__}"
            )
        if device_type not in _C._library_devices():
            raise ValueError(f"register_autocast: expected a device, got '{device_type}'")
        first = not self.dtypes
        self.dtypes[device_type] = dtype
        if first:
            _C._library_set_layer_function(self.name, "autocast", self, *caller())

    def remove(self, device_type: str, dtype: _C.dtype) -> None:
        """Take back what add() did, unless the device was given another dtype since."""
        if self.dtypes.get(device_type) is not dtype:
            return
        del self.dtypes[device_type]
        if not self.dtypes and self._all.get(self.name) is self:
            del self._all[self.name]
            if _C._library_has_autocast(self.name):
                _C._library_clear_layer_function(self.name, "autocast")

    def _cast(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._cast(v) for v in value]
        if not isinstance(value, _C.Tensor) or not value.is_floating_point():
            return value
        dtype = self.dtypes.get(value.device.type)
        if dtype is None or value.dtype == _C.float64:
            return value
        return value.to(dtype) if is_autocast_enabled(value.device.type) else value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [self._cast(a) for a in args]
        named = {key: self._cast(value) for key, value in kwargs.items()}
        with below("autocast"):
            return overload_named(self.name)(*given, **named)
