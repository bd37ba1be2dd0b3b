"""fx.passes for devices and compilers: parts on CUDA devices, regions that are marked."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import fx
from treadle.fx.passes.backends import cudagraphs
from treadle.fx.passes.regional_inductor import regional_inductor
from treadle.fx.passes.regional_inductor_invoke_subgraph import (
    regional_inductor_invoke_subgraph,
)
from treadle.testing import assert_close

X = treadle.arange(6.0).reshape(2, 3)


def program(x):
    return (x.relu() + 1).exp().split(1)[0].sum()


def test_a_graph_on_the_cpu_has_no_such_part():
    gm = fx.symbolic_trace(program)
    made = cudagraphs.partition_cudagraphs(gm, [X])
    assert_close(made(X), program(X))
    calls = {n.op for n in made.graph.nodes} - {"placeholder", "output"}
    assert "call_method" in calls and all("val" not in n.meta for n in made.graph.nodes)


def test_parts_on_cuda_are_submodules(monkeypatch):
    monkeypatch.setattr(cudagraphs, "_devices", lambda nodes: {"cuda"})
    made = cudagraphs.partition_cudagraphs(fx.symbolic_trace(program), [X])
    assert [n.op for n in made.graph.nodes] == ["placeholder", "call_module", "output"]
    assert_close(made(X), program(X))


class Elsewhere(treadle.Tensor):
    """A tensor that says it is on a CUDA device."""

    @property
    def device(self):
        return treadle.device("cuda", 0)


@pytest.mark.parametrize("kinds", [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cpu")])
def test_calls_that_have_to_do_with_cuda_only(kinds):
    gm = fx.symbolic_trace(lambda x: x.relu()[0])
    x, relu, item, out = gm.graph.nodes
    for node, kind in zip((x, relu), kinds):
        node.meta["val"] = X.as_subclass(Elsewhere) if kind == "cuda" else X
    support = cudagraphs.CudaGraphsSupport()
    assert support.is_node_supported({}, relu) == (kinds == ("cuda", "cuda"))
    assert support.is_node_supported({}, item)
    assert not support.is_node_supported({}, x) and not support.is_node_supported({}, out)


def test_marked_regions_stay():
    gm = fx.symbolic_trace(program)
    assert regional_inductor(gm, X) is gm and regional_inductor_invoke_subgraph(gm, X) is gm
