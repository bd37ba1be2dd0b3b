"""The description of a loaded value, as plain JSON: types, geometry, bits of every element, and
what shares memory or identity with what.

Both sides use it: PyTorch for the expected descriptions, the tests for what Treadle loaded.
"""

# SPDX-License-Identifier: Apache-2.0

import collections
import enum
from typing import Any

import numpy as np

_SAME = {"NonDynamicallyQuantizableLinear": "Linear"}
_PLAIN = (type(None), bool, int, str)


def describe(value: Any, torch: Any) -> Any:
    """The description of `value`, where `torch` is the library that its tensors belong to."""
    return _Describer(torch).describe(value)


class _Describer:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._storages: dict[int, int] = {}
        self._objects: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is used twice

    def describe(self, value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return {"enum": type(value).__name__, "name": value.name}
        if isinstance(value, (_PLAIN)) and type(value) in _PLAIN:
            return value
        if isinstance(value, float) and type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if type(value) in (bytes, bytearray):
            return {type(value).__name__: value.hex()}
        if isinstance(value, self._torch.Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return {"array": value.tolist(), "dtype": value.dtype.str}
        if isinstance(value, np.generic):
            return {"number": value.item(), "dtype": value.dtype.str}
        if isinstance(value, self._torch.nn.Module):
            return self._module(value)
        return self._container(value)

    def _seen(self, value: Any) -> int:
        """The number of an object: the same object has the same one."""
        self._kept.append(value)
        return self._objects.setdefault(id(value), len(self._objects))

    def _tensor(self, tensor: Any) -> dict:
        described = {
            "tensor": tensor.__class__.__name__,
            "object": self._seen(tensor),
            "dtype": str(tensor.dtype).rpartition(".")[2],
            "shape": list(tensor.shape),
            "requires_grad": tensor.requires_grad,
        }
        if tensor.device.type == "meta":
            return {**described, "device": "meta"}
        if tensor.is_sparse:
            parts = {"indices": tensor._indices(), "values": tensor._values()}
            described |= {name: self._tensor(part) for name, part in parts.items()}
            return {**described, "is_coalesced": tensor.is_coalesced()}
        plain = tensor.detach()
        if tensor.is_conj() or tensor.is_neg():
            plain = plain.resolve_conj().resolve_neg()
            self._kept.append(plain)
        described["bits"] = _bytes(plain.contiguous().reshape((-1,)), self._torch).hex()
        described["stride"] = list(plain.stride())
        if plain.numel():
            where = plain.untyped_storage().data_ptr()
            described["storage"] = self._storages.setdefault(where, len(self._storages))
            described["offset"] = plain.storage_offset()
            described["storage_bytes"] = plain.untyped_storage().nbytes()
        state = {k: v for k, v in vars(tensor).items() if k != "_backward_hooks"}
        if state:
            described["state"] = {name: self.describe(item) for name, item in state.items()}
        return described

    def _module(self, module: Any) -> dict:
        return {
            "module": _SAME.get(type(module).__name__, type(module).__name__),
            "training": module.training,
            "state": {k: self.describe(v) for k, v in module.state_dict().items()},
            "children": [self.describe(child) for child in module.children()],
        }

    def _container(self, value: Any) -> dict:
        name = type(value).__name__
        if isinstance(value, self._torch.Size):
            return {"Size": list(value)}
        if type(value) in (tuple, list, collections.deque):
            return {name: [self.describe(item) for item in value]}
        if type(value) in (set, frozenset):
            return {name: sorted(str(item) for item in value)}
        if isinstance(value, dict):
            described = {name: [[self.describe(k), self.describe(v)] for k, v in value.items()]}
            if getattr(value, "__dict__", None):
                described["attributes"] = self.describe(dict(vars(value)))
            return described
        if isinstance(value, tuple):
            return {name: [self.describe(item) for item in value]}
        if isinstance(value, (self._torch.dtype, self._torch.device, self._torch.layout)):
            return {name: str(value).replace("treadle.", "torch.")}
        if hasattr(value, "__dict__"):
            return {"object": name, "state": self.describe(dict(vars(value)))}
        return {name: repr(value)}


def _bytes(flat: Any, torch: Any) -> bytes:
    """The elements of a contiguous tensor of one dimension."""
    return bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""
