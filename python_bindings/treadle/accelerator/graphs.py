"""Graphs of work on the device beside the CPU."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._device import facade


class Graph:
    """The graph of the module of the device, `treadle.cuda.CUDAGraph`; RuntimeError where there is
    none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        module = facade.accelerator("Graph")
        made = getattr(module, "CUDAGraph", None) or getattr(module, "Graph", None)
        if made is None:
            raise NotImplementedError(f"accelerator.Graph: {module.__name__} has no graphs")
        return made(*args, **kwargs)
