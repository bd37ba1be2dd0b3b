"""The form of the tensors that stages exchange: shape, dtype, whether a gradient goes back."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor


class PipeliningMetadataError(RuntimeError):
    """The tensors between stages are not what they were declared, or were before."""


class Form(NamedTuple):
    """The form of one tensor."""

    shape: Tuple[int, ...]
    dtype: str
    has_gradient: bool

    def empty(self, device: Any) -> Tensor:
        """A tensor to receive into."""
        return _C.empty(self.shape, dtype=getattr(_C, self.dtype), device=device)

    def text(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


Forms = Tuple[Form, ...]


def forms_of(tensors: Sequence[Any], has_backward: bool = True) -> Forms:
    """The forms of tensors."""
    return tuple(
        Form(tuple(t.shape), str(t.dtype).rpartition(".")[2], t.requires_grad and has_backward)
        for t in tensors
    )


def as_tensors(what: str, values: Any) -> Tuple[Tensor, ...]:
    """A tensor, or a sequence of tensors, as a tuple. TypeError for other values."""
    found = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    for value in found:
        if not isinstance(value, Tensor):
            raise TypeError(f"{what}: expected tensors, got {type(value).__name__}")
    return found


def check(what: str, declared: Optional[Forms], found: Forms) -> None:
    """PipeliningMetadataError where shapes or dtypes differ."""
    if declared is None:
        return
    wanted, got = (", ".join(form.text() for form in forms) for forms in (declared, found))
    if wanted != got:
        raise PipeliningMetadataError(f"{what}: expected {wanted}, got {got}")


def encode(forms: Forms) -> Tensor:
    """The forms as bytes, to send."""
    return _C.tensor(list(json.dumps(forms).encode()), dtype=_C.uint8)


def decode(data: Tensor) -> Forms:
    """The forms that encode() made bytes of."""
    rows: List[Any] = json.loads(bytes(data.cpu().tolist()))
    return tuple(Form(tuple(shape), dtype, has_gradient) for shape, dtype, has_gradient in rows)
