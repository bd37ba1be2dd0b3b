"""The abilities of the namespace, as a program may ask: devices, dtypes, capabilities."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from treadle import _C
from treadle.array_api._dtypes import Dtype, Kind, isdtype

# Those that the standard knows; float16 and bfloat16 are Treadle's own.
_DTYPES = {
    name: getattr(_C, name)
    for name in (
        ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
        + ["float32", "float64", "complex64", "complex128"]
    )
}


class Info:
    """The result of __array_namespace_info__()."""

    def capabilities(self) -> Dict[str, Any]:
        """Whether there are masks, and results whose shape depends on data; the limit of rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> _C.device:
        """Where new arrays are made."""
        return _C.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> Dict[str, Dtype]:
        """The dtypes of new arrays, by kind."""
        floating = _C.get_default_dtype()
        return {
            "real floating": floating,
            "complex floating": floating.to_complex(),
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def devices(self) -> Tuple[_C.device, ...]:
        """Every device that arrays can be on."""
        return (_C.device("cpu"),)

    def dtypes(self, *, device: Any = None, kind: Optional[Kind] = None) -> Dict[str, Dtype]:
        """The standard's dtypes, of a kind if one is named."""
        return {n: d for n, d in _DTYPES.items() if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> Info:
    """The inspection interface."""
    return Info()
