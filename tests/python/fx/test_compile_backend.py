"""treadle.compile(backend=fn): fn is given the program as a graph, and what it returns is run."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Callable, List

import pytest

import treadle
from treadle import fx, nn


class Backend:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.graphs: List[fx.GraphModule] = []
        self.inputs: List[Any] = []
        self.runs = 0

    def __call__(self, graph: fx.GraphModule, inputs: List[treadle.Tensor]) -> Callable:
        self.graphs.append(graph)
        self.inputs.append(inputs)

        def run(*args: treadle.Tensor) -> Any:
            self.runs += 1
            return graph.forward(*args)

        return run


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x: treadle.Tensor, d: Any = None) -> Any:
        y = self.norm(self.linear(x)).relu()
        return {"y": y if x.shape[0] > 2 else -y, "n": 3}


def test_a_function() -> None:
    backend = Backend()

    @treadle.compile(backend=backend, fullgraph=True)
    def program(a, b):
        return (a / (a.abs() + 1)) * b, b.sum()

    a, b = treadle.randn(4), treadle.randn(4)
    for _ in range(2):
        product, total = program(a, b)
        assert treadle.equal(product, a / (a.abs() + 1) * b) and treadle.equal(total, b.sum())
    assert len(backend.graphs) == 1 and backend.runs == 2
    assert isinstance(backend.graphs[0], fx.GraphModule)
    assert [id(t) for t in backend.inputs[0]] == [id(a), id(b)]
    operations = [n.op for n in backend.graphs[0].graph.nodes]
    assert operations[:2] == ["placeholder"] * 2 and operations[-1] == "output"
    program(treadle.randn(5), treadle.randn(5))
    assert len(backend.graphs) == 2
    treadle._dynamo.reset()
    program(a, b)
    assert len(backend.graphs) == 3


def test_a_module_trains_as_written() -> None:
    backend, net = Backend(), Net()
    twin = copy.deepcopy(net)
    compiled = treadle.compile(net, backend=backend)
    x = treadle.randn(4, 3)
    for _ in range(3):
        got, expected = compiled(x), twin(x)
        assert got["n"] == 3 and treadle.equal(got["y"], expected["y"])
    got["y"].sum().backward()
    expected["y"].sum().backward()
    assert treadle.equal(net.linear.weight.grad, twin.linear.weight.grad)
    assert treadle.equal(net.norm.running_mean, twin.norm.running_mean)
    assert net.norm.num_batches_tracked == 3 and len(backend.graphs) == 1
    assert treadle.equal(compiled(x[:2])["y"], twin(x[:2])["y"])  # the other way of its `if`
    net.eval(), twin.eval()
    assert treadle.equal(compiled(x)["y"], twin(x)["y"]) and len(backend.graphs) == 3
    assert treadle.equal(copy.deepcopy(compiled)(x)["y"], twin(x)["y"])


def test_random_numbers_and_arguments_are_as_if_it_ran_once() -> None:
    def program(x, offsets):
        x.add_(1)
        return treadle.dropout(x, 0.5, True) + offsets[0]

    treadle.manual_seed(3)
    x = treadle.ones(8)
    got = treadle.compile(program, backend=Backend())(x, [treadle.ones(8)])
    treadle.manual_seed(3)
    expected = program(treadle.ones(8), [treadle.ones(8)])
    assert treadle.equal(got, expected) and x.tolist() == [2] * 8


def test_what_a_graph_cannot_hold() -> None:
    def program(x):
        return x * 2 if x.sum() > 0 else -x

    backend = Backend()
    whole = treadle.compile(program, backend=backend)
    assert whole(treadle.ones(1)).item() == 2 and whole(-treadle.ones(1)).item() == 1
    assert backend.graphs == []
    with pytest.raises(treadle._dynamo.exc.Unsupported) as caught:
        treadle.compile(program, backend=backend, fullgraph=True)(treadle.ones(1))
    assert str(caught.value) == (
        "compile: expected a program that one graph can hold for fullgraph=True, got one that "
        "calls Tensor.__bool__, whose result is known only when the program runs"
    )


def test_errors_of_a_backend() -> None:
    def broken(graph, inputs):
        raise ValueError("no")

    x = treadle.ones(1)
    with pytest.raises(treadle._dynamo.exc.BackendCompilerFailed) as caught:
        treadle.compile(lambda x: x + 1, backend=broken)(x)
    assert str(caught.value) == "backend='broken' raised:\nValueError: no"
    with pytest.raises(RuntimeError, match="TypeError: expected it to return a function, got int"):
        treadle.compile(lambda x: x + 1, backend=lambda graph, inputs: 3)(x)
    with treadle._dynamo.config.patch(suppress_errors=True):
        assert treadle.compile(lambda x: x + 1, backend=broken)(x).item() == 2
