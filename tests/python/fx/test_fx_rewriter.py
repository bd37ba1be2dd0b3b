"""fx.experimental.rewriter and debug: asserts in traced programs, a debugger in generated code."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pdb

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.experimental.debug import set_trace
from treadle.fx.experimental.rewriter import (
    AST_Rewriter,
    RewritingTracer,
    normalize_source_lines,
)


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x, scale=2.0):
        assert x.shape[0] > 1, "expected more than one row"
        assert x.sum() > 0
        return self.linear(x) * scale


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Checked()

    def forward(self, x):
        return super().__call__ is not None and self.inner(x)


def test_asserts_of_modules_are_recorded():
    module = Outer()
    gm = fx.GraphModule(module, RewritingTracer().trace(module))
    calls = [n for n in gm.graph.nodes if n.target is treadle._assert]
    assert [n.args[1] for n in calls] == ["expected more than one row", ""]
    x = treadle.ones(2, 2)
    assert treadle.equal(gm(x), module(x)) and type(module.inner) is Checked
    with pytest.raises(AssertionError, match="expected more than one row"):
        gm(x[:1])
    with pytest.raises(AssertionError):
        gm(-x)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(module)


def test_functions():
    factor = 3

    def function(x, by=2):
        assert x > 0, "expected more than 0"
        return x * by * factor

    made = AST_Rewriter().rewrite(function)
    assert made.__name__ == "function" and made(treadle.tensor(2)) == 12 and made(1, by=1) == 3
    with pytest.raises(AssertionError, match="expected more than 0"):
        made(treadle.tensor(-1))
    assert AST_Rewriter().rewrite(len_of) is len_of
    graph = RewritingTracer().trace(function)
    assert [n.target for n in graph.nodes if n.op == "call_function"][1] is treadle._assert


def len_of(x):
    return len(x)


def test_lines_are_indented():
    lines = ["    def f(self):\n", "        return 1\n", "\n", "  x\n"]
    assert normalize_source_lines(lines) == [*lines[:2], "    \n", "      x\n"]
    assert normalize_source_lines(["  x = 1\n"]) == ["  x = 1\n"]


def test_a_module_stops_in_the_debugger(monkeypatch):
    stops = []
    monkeypatch.setattr(pdb, "set_trace", lambda: stops.append(1))
    gm = fx.symbolic_trace(lambda x: x + 1)
    assert set_trace(gm) is gm and gm(1) == 2 and stops == [1]
    gm.recompile()
    assert gm(1) == 2 and stops == [1]
