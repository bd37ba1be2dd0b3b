"""ShapeProp: run a graph on example inputs, and note shapes and dtypes on its nodes.

Example:

    ShapeProp(traced).propagate(x)
    node.meta["tensor_meta"].shape
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import traceback
from typing import Any, Dict, NamedTuple, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.fx.interpreter import Interpreter
from treadle.fx.node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """The properties of a tensor, without its values."""

    shape: _C.Size
    dtype: _C.dtype
    requires_grad: bool
    stride: Tuple[int, ...]
    memory_format: Optional[_C.memory_format]
    is_quantized: bool
    qparams: Dict[str, Any]


# Each with the number of dimensions it has a meaning for; 0 is any.
_FORMATS = (
    (_C.contiguous_format, 0),
    (_C.channels_last, 4),
    (_C.channels_last_3d, 5),
)


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    memory_format = None
    if include_contiguity:
        for option, dimensions in _FORMATS:
            if dimensions in (0, result.dim()) and result.is_contiguous(memory_format=option):
                memory_format = option
                break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Notes `meta["tensor_meta"]` on nodes whose values are or hold tensors, and `meta["type"]`."""

    def __init__(self, gm: Any, fake_mode: Optional[Any] = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback_text = "".join(traceback.format_exception_only(type(error), error)).strip()
            raise RuntimeError(
                f"ShapeProp: expected node {n.format_node()} to run, got {traceback_text}"
            ) from error
        found = False

        def extract(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on examples; returns its result."""
        return super().run(*args)


__all__ = ["ShapeProp"]
