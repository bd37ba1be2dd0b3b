"""How a tensor of another layout is shown: its parts as tensors are, then what it is."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C, _names, _tensor_str
from treadle._C import Tensor
from treadle._rebuild import is_registered
from treadle.autograd.grad_mode import no_grad


def _part(tensor: Tensor, prefix: str, indent: int) -> str:
    head = f"{prefix}=tensor("
    if tensor.device.type == "meta":
        return f"{head}..., size={tuple(tensor.shape)})"
    if tensor.numel() == 0:
        return f"{head}[], size={tuple(tensor.shape)})"
    with no_grad():
        return head + _tensor_str._body(tensor.detach().cpu(), indent + len(head)) + ")"


def sparse_repr(tensor: Any) -> str:
    """The text that `repr(tensor)` gives."""
    head = "tensor("
    indent = len(head)
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    suffixes.append(f"size={tuple(tensor.shape)}")
    if tensor.device.type != "meta":
        fields = _C._layout_contents(tensor)[1]
        if not is_registered(tensor.layout):
            fields = {"nnz": tensor._nnz()}
        suffixes += [f"{name}={value}" for name, value in fields.items()]
    if not _tensor_str._is_obvious(tensor.dtype):
        dtype = _names.in_words_of_the_program(str(tensor.dtype))
        suffixes.append(f"dtype={dtype}")
    suffixes.append(f"layout={tensor.layout}")
    parts = [
        _part(part.detach(), name, indent) for name, part in _C._layout_contents(tensor)[0].items()
    ]
    text = head + f",\n{' ' * indent}".join(parts)
    suffixes += _tensor_str._grad_suffix(tensor)
    return _tensor_str._join(text, suffixes, indent, new_line=True)
