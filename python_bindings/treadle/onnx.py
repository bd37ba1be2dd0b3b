"""The name by which programs write ONNX files, which takes a graph of the program: there is none.

Programs that only import it, or ask whether they are being exported, run.
"""

from __future__ import annotations

from typing import Any


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

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export"]
