"""The name by which programs write ONNX files, which takes a graph of the program: there is none.

Programs that only import it, or ask whether they are being exported, run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from typing import Any, Callable, Dict, Tuple

from treadle import _names

producer_name = "treadle"
producer_version = "0"

# An exporter's functions for operators of a program's own, by name and opset.
_symbolics: Dict[Tuple[str, int], Callable[..., Any]] = {}


class OperatorExportTypes(enum.IntEnum):
    """The operators that an exporter would write."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.IntEnum):
    """The mode of a model that an exporter would write."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OnnxExporterError(RuntimeError):
    """An error while a program is exported."""


def is_in_onnx_export() -> bool:
    """Whether the code is being exported: never."""
    return False


def export(*args: Any, **kwargs: Any) -> Any:
    """Raises: programs run as they are written, and nothing makes a graph of them."""
    raise NotImplementedError(
        "onnx.export: expected a graph of the model to write, but nothing here makes one; "
        "save its state_dict(), which PyTorch loads, and export it there"
    )


_export = export


def _check_operator(what: str, name: str, opset_version: int) -> Tuple[str, int]:
    namespace, separator, operator = name.partition("::")
    if not (namespace and separator and operator):
        raise ValueError(f"{what}: expected a name as 'my_ns::operator', got '{name}'")
    return name, int(opset_version)


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Say how an exporter would write an operator, "my_ns::operator". It is remembered, and no
    exporter reads it. ValueError for a name of another form."""
    key = _check_operator("register_custom_op_symbolic", symbolic_name, opset_version)
    _symbolics[key] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Take that back. ValueError for a name of another form."""
    key = _check_operator("unregister_custom_op_symbolic", symbolic_name, opset_version)
    _symbolics.pop(key, None)


__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "OnnxExporterError",
    "OperatorExportTypes",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "producer_name",
    "producer_version",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]
