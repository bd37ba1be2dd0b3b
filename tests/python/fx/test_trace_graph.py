"""The graph of one run: nodes by operator, with the sizes of their arguments. Kinds and arguments
were compared with PyTorch's."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn
from treadle.jit import _get_trace_graph


def kinds(graph: Any) -> List[str]:
    return [n.kind() for n in graph.nodes() if not n.kind().startswith("prim::")]


def sizes(values: Any) -> List[Any]:
    return [v.type().sizes() if v.isCompleteTensor() else v.toIValue() for v in values]


def test_nodes_of_layers() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(16, 5), nn.LayerNorm(5),
    ).eval()  # fmt: skip
    x = treadle.ones(2, 3, 8, 8)
    graph, result = _get_trace_graph(model, (x,))
    assert result.equal(model(x))
    assert kinds(graph) == [
        "aten::_convolution", "aten::batch_norm", "aten::relu", "aten::adaptive_avg_pool2d",
        "aten::flatten", "aten::linear", "aten::layer_norm",
    ]  # fmt: skip
    convolution, norm, *_, linear, _ = [
        n for n in graph.nodes() if not n.kind().startswith("prim::")
    ]
    assert sizes(convolution.inputs()) == [
        [2, 3, 8, 8], [4, 3, 3, 3], [4], (1, 1), (1, 1), (1, 1), False, 0, 1, False, False, True,
        True,
    ]  # fmt: skip
    assert sizes(convolution.outputs()) == [[2, 4, 8, 8]] == [convolution.output().type().sizes()]
    assert sizes(norm.inputs())[:8] == [[2, 4, 8, 8], [4], [4], [4], [4], False, 0.1, 1e-5]
    assert sizes(linear.inputs()) == [[2, 16], [5, 16], [5]] and linear.inputsSize() == 3
    assert len(list(graph.inputs())) == 11 and sizes(graph.outputs()) == [[2, 5]]
    assert graph.findAllNodes("aten::linear") == [linear]


def test_nodes_of_functions() -> None:
    def f(x: Any, w: Any) -> Any:
        y = F.linear(x, w) + 1
        z = treadle.einsum("ab,cb->ac", y, y)
        return treadle.cat([z, z @ z.t()]).view(-1, 2), x.shape, x.size(0)

    graph, (result, _, _) = _get_trace_graph(f, (treadle.ones(2, 3), treadle.ones(4, 3)))
    assert kinds(graph) == ["aten::linear", "aten::add", "aten::einsum", "aten::t", "aten::matmul",
                            "aten::cat", "aten::view"]  # fmt: skip
    (einsum,) = graph.findAllNodes("aten::einsum")
    equation, operands, _ = einsum.inputs()
    assert equation.toIValue() == "ab,cb->ac" and operands.node().kind() == "prim::ListConstruct"
    assert sizes(operands.node().inputs()) == [[2, 4], [2, 4]]
    text = str(graph)
    assert text.startswith("graph(%0 : float32(2, 3), %1 : float32(4, 3)):\n")
    assert "%3 : float32(2, 4) = aten::linear(%0, %1, %2)\n" in text
    assert "%2 : NoneType = prim::Constant[value=None]()\n" in text
    assert tuple(result.shape) == (4, 2)


def test_a_function_without_an_operator_is_looked_into() -> None:
    x = treadle.ones(1, 2, 4, 4)
    graph, _ = _get_trace_graph(lambda x: F.interpolate(x, scale_factor=2), x)
    assert kinds(graph) == ["aten::upsample_nearest2d"]
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    graph, _ = _get_trace_graph(lambda x: layer(x, x, x), treadle.ones(1, 3, 4))
    assert {"aten::linear", "aten::scaled_dot_product_attention"} & set(kinds(graph))


def test_scopes() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def push(name: str) -> Any:
        return lambda module, inputs: treadle._C._get_tracing_state().push_scope(name)

    def pop(module: Any, inputs: Any, outputs: Any) -> None:
        treadle._C._get_tracing_state().pop_scope()

    for name, module in model.named_modules():
        module.register_forward_pre_hook(push(name))
        module.register_forward_hook(pop)
    graph, _ = _get_trace_graph(model, treadle.ones(1, 3))
    found = {n.kind(): n.scopeName() for n in graph.nodes()}
    assert found["aten::linear"] == "/0" and found["aten::relu"] == "/1"
    assert treadle._C._get_tracing_state() is None and not treadle.jit.is_tracing()
    with pytest.raises(RuntimeError) as error:
        treadle.TracingState().pop_scope()
    assert str(error.value) == "pop_scope: expected a scope that was pushed, got none"


def test_what_is_given_and_what_is_refused() -> None:
    graph, result, inputs = _get_trace_graph(
        lambda x, scale: x * scale, treadle.ones(2), {"scale": 3}, return_inputs=True
    )
    assert kinds(graph) == ["aten::mul"] and result.tolist() == [3.0, 3.0] and len(inputs) == 1
    assert isinstance(graph, treadle.Graph) and isinstance(next(graph.inputs()), treadle.Value)
    with pytest.raises(NotImplementedError) as error:
        _get_trace_graph(len, (), _return_inputs_states=True)
    assert str(error.value) == "_get_trace_graph: expected no _return_inputs_states, got True"
    graph, _ = _get_trace_graph(lambda x: x.max(0), treadle.ones(2, 3))
    (node,) = graph.findAllNodes("aten::max")
    with pytest.raises(RuntimeError) as several:
        node.output()
    assert str(several.value) == "output: expected one result, got 2"
