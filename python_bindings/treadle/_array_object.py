"""What the Python array API standard asks of an array and PyTorch's tensor does not have.

    xp = x.__array_namespace__()       # the module treadle.array_api
    y = x.to_device("cpu")

`x.size` is the one attribute on which the two disagree: here it is PyTorch's method, `x.numel()`
counts the elements.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Optional

from treadle._C import Tensor

# Everything that is called the same in these meets the version before it.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _array_namespace(self: Tensor, /, *, api_version: Optional[str] = None) -> ModuleType:
    """The module whose functions are the standard's."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: expected api_version in {VERSIONS}, got {api_version!r}"
        )
    return importlib.import_module("treadle.array_api")


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """This tensor on another device; itself where it is there already."""
    if stream is not None:
        raise ValueError(f"to_device: expected stream = None, got stream = {stream!r}")
    return self.to(device=device)


def _complex(self: Tensor) -> complex:
    """The value of a tensor of one element."""
    return complex(self.item())


def _imatmul(self: Tensor, other: Tensor) -> Tensor:
    """self @= other, where the product has the shape of self."""
    product = self @ other
    if product.shape != self.shape:
        raise ValueError(
            f"__imatmul__: expected a product of shape {tuple(self.shape)}, "
            f"got {tuple(product.shape)}"
        )
    return self.copy_(product)


def install() -> None:
    """Gives Tensor these methods."""
    Tensor.__array_namespace__ = _array_namespace
    Tensor.to_device = _to_device
    Tensor.__complex__ = _complex
    Tensor.__imatmul__ = _imatmul


install()
