"""set_trace: a debugger inside of a traced module."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle.fx.graph_module import GraphModule


def set_trace(gm: GraphModule) -> GraphModule:
    """Let the module stop in the debugger `pdb` whenever it runs, and return it."""

    def stop_first(transform):  # type: ignore[no-untyped-def]
        def changed(body):  # type: ignore[no-untyped-def]
            lines = transform(body) if transform else body
            return ["import pdb; pdb.set_trace()\n", *lines]

        return changed

    with gm.graph.on_generate_code(stop_first):
        gm.recompile()
    return gm


__all__ = ["set_trace"]
