"""treadle.fx: programs become graphs, graphs become code, and both compute the same."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import math
import operator
import pickle
from pathlib import Path
from typing import Any, Dict, List

import pytest

import treadle
import treadle.fx as fx
import treadle.nn.functional as F
from treadle import nn


def doubled(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


fx.wrap("doubled")
fx.wrap("len")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return F.relu(self.linear(x)) + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), nn.ReLU(), Block())
        self.scale = nn.Parameter(treadle.full((3,), 2.0))
        self.register_buffer("shift", treadle.ones(3))

    def forward(self, x: treadle.Tensor, power: int = 1) -> treadle.Tensor:
        y = self.blocks(x) * self.scale + self.shift
        return treadle.cat([y, x.view(x.size(0), -1)], dim=1) ** power


def code_of(program: Any) -> str:
    return fx.symbolic_trace(program).code.strip()


# ---- tracing ----


def test_the_graph_of_a_function() -> None:
    def program(x, y=2.0):
        return treadle.relu(x + y).sum(dim=0)

    traced = fx.symbolic_trace(program)
    assert str(traced.graph) == (
        "graph():\n"
        "    %x : [num_users=1] = placeholder[target=x]\n"
        "    %y : [num_users=1] = placeholder[target=y](default=2.0)\n"
        "    %add : [num_users=1] = call_function[target=operator.add]"
        "(args = (%x, %y), kwargs = {})\n"
        "    %relu : [num_users=1] = call_function[target=treadle.relu]"
        "(args = (%add,), kwargs = {})\n"
        "    %sum_1 : [num_users=1] = call_method[target=sum](args = (%relu,), kwargs = {dim: 0})\n"
        "    return sum_1"
    )
    assert traced.code == (
        "\n\n\ndef forward(self, x, y = 2.0):\n"
        "    add = x + y;  x = y = None\n"
        "    relu = treadle.relu(add);  add = None\n"
        "    sum_1 = relu.sum(dim = 0);  relu = None\n"
        "    return sum_1\n"
        "    "
    )
    x = treadle.tensor([[1.0, -5.0], [2.0, 1.0]])
    assert treadle.equal(traced(x), program(x)) and treadle.equal(traced(x, 9), program(x, 9))


def test_modules_are_leaves_or_traced_through() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    called = [n.target for n in traced.graph.nodes if n.op == "call_module"]
    assert called == ["blocks.0.linear", "blocks.1", "blocks.2.linear"]
    read = [n.target for n in traced.graph.nodes if n.op == "get_attr"]
    assert read == ["scale", "shift"]
    x = treadle.randn(2, 3)
    assert treadle.equal(traced(x, 2), net(x, 2))
    assert traced.scale is net.scale and type(traced).__name__ == "Net"
    assert set(traced.state_dict()) == set(net.state_dict())
    assert 'getattr(self.blocks, "0").linear(x)' in traced.code


def test_gradients_flow_through_a_graph_module() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    x = treadle.randn(2, 3)
    traced(x).sum().backward()
    got = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    assert all(treadle.equal(a, p.grad) for a, p in zip(got, net.parameters()))


@pytest.mark.parametrize(
    "program, line",
    [
        (lambda x: 2 - x, "sub = 2 - x;  x = None"),
        (lambda x: x[1:, None, ...], "getitem = x[(slice(1, None, None), None, Ellipsis)]"),
        (lambda x: -x, "neg = -x"),
        (lambda x: x @ x, "matmul = x @ x"),
        (lambda x: x.T, "getattr_1 = x.T"),
        (lambda x: x.to(treadle.float64), "to = x.to(treadle.float64)"),
        (lambda x: F.relu(x, inplace=False), "treadle.nn.functional.relu(x, inplace = False)"),
        (lambda x: math.sqrt(x), "sqrt = math_sqrt(x)"),
        (lambda x: treadle.ops.aten.relu.default(x), "treadle.ops.aten.relu.default(x)"),
        (lambda x: x == math.inf, "eq = x == inf"),
        (lambda x: treadle.zeros_like(x, device=treadle.device("cpu")), "device(type='cpu')"),
        (lambda x: {"a": (x, [1, None])}, "return {'a': (x, [1, None])}"),
        (lambda x: abs(x), "abs_1 = _operator_abs(x)"),
    ],
)
def test_code(program: Any, line: str) -> None:
    assert line in code_of(program)


def test_what_stands_in_a_branch_or_loop_is_refused() -> None:
    with pytest.raises(fx.proxy.TraceError, match="cannot be used as inputs to control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(fx.proxy.TraceError, match="its length is not known while it is traced"):
        fx.symbolic_trace(lambda x: [a for a in x])
    first, second = fx.symbolic_trace(_unpacks)(treadle.tensor([3, 4]))
    assert (first.item(), second.item()) == (3, 4)


def _unpacks(x: Any) -> Any:
    a, b = x
    return a, b


def test_wrapped_functions_are_one_node() -> None:
    traced = fx.symbolic_trace(lambda x: doubled(x) + 1)
    assert [n.name for n in traced.graph.nodes] == ["x", "doubled", "add", "output"]
    assert 'treadle.fx._symbolic_trace.wrap("' in traced.code
    assert traced(treadle.ones(2)).tolist() == [3, 3]
    assert traced(-treadle.ones(2)).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="^fx.wrap: expected a function or its name, got int$"):
        fx.wrap(3)
    with pytest.raises(NotImplementedError, match="at the outermost level of a module"):
        fx.wrap("print")


def test_concrete_arguments() -> None:
    def program(x, up=True):
        return x + 1 if up else x - 1

    down = fx.symbolic_trace(program, concrete_args={"up": False})
    assert down(treadle.ones(1), False).item() == 0
    with pytest.raises(AssertionError, match="up has been specialized to have value False"):
        down(treadle.ones(1), True)


def test_nested_arguments() -> None:
    def program(x, d):
        return {"sum": x + d["a"] + d["b"][0]}

    form = {"a": fx.PH, "b": [fx.PH, 2]}
    traced = fx.symbolic_trace(program, concrete_args={"d": form})
    got = traced(treadle.ones(1), {"a": treadle.ones(1), "b": [treadle.ones(1), 2]})
    assert list(got) == ["sum"] and got["sum"].item() == 3
    assert "fx_pytree.tree_flatten_spec([x, d], self._in_spec)" in traced.code
    again = pickle.loads(pickle.dumps(traced))
    assert again(treadle.ones(1), {"a": treadle.ones(1), "b": [treadle.ones(1), 2]})["sum"] == 3


def test_arguments_with_stars_and_by_keyword() -> None:
    def program(*args, scale, **more):
        return args[0] * scale + more["bias"]

    traced = fx.symbolic_trace(program)
    assert traced.code.strip().startswith("def forward(self, scale, *args, **more):")


def test_a_tensor_that_the_program_makes_is_kept() -> None:
    traced = fx.symbolic_trace(lambda x: x + treadle.ones(2))
    assert traced._tensor_constant0.tolist() == [1, 1]
    assert traced(treadle.zeros(2)).tolist() == [1, 1]


def test_a_tracer_of_ones_own() -> None:
    class Blocks(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, Block) or super().is_leaf_module(m, module_qualified_name)

    net = Net()
    tracer = Blocks()
    graph = tracer.trace(net)
    assert [n.target for n in graph.nodes if n.op == "call_module"] == [
        "blocks.0",
        "blocks.1",
        "blocks.2",
    ]
    assert tracer.node_name_to_scope["blocks_0"] == ("blocks.0", Block)
    node = next(n for n in graph.nodes if n.op == "call_module")
    assert list(node.meta["nn_module_stack"]) == ["blocks", "blocks.0"]
    assert treadle.equal(fx.GraphModule(net, graph)(x := treadle.ones(1, 3)), net(x))


def test_proxyable_classes() -> None:
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def total(self):
            return self.left + self.right

    traced = fx.symbolic_trace(lambda x, y: Pair(x, y).total())
    assert [n.op for n in traced.graph.nodes][2:4] == ["call_function", "call_method"]
    assert traced(treadle.ones(1), treadle.ones(1)).item() == 2


# ---- graphs ----


def small() -> fx.GraphModule:
    return fx.symbolic_trace(lambda x, y: treadle.relu(x + y).neg())


def test_nodes_know_their_users_and_place() -> None:
    graph = small().graph
    x, y, add, relu, neg, output = graph.nodes
    assert len(graph.nodes) == 6 and list(reversed(graph.nodes))[0] is output
    assert list(x.users) == [add] and add.all_input_nodes == [x, y]
    assert add.next is relu and relu.prev is add and add < relu and relu >= add
    add.args = (x, x)
    assert not y.users and add.args == (x, x)
    add.update_arg(1, y)
    assert list(y.users) == [add]
    assert graph.output_node() is output
    assert graph.find_nodes(op="call_function", target=treadle.relu) == [relu]
    with pytest.raises(TypeError, match="^immutable_list: expected no change of arguments"):
        fx.immutable_collections.immutable_list([1]).append(2)


def test_changing_a_graph() -> None:
    module = small()
    graph = module.graph
    relu = graph.find_nodes(op="call_function", target=treadle.relu)[0]
    with graph.inserting_after(relu):
        tanh = graph.call_function(treadle.tanh, (relu,))
    relu.replace_all_uses_with(tanh, lambda user: user is not tanh)
    with pytest.raises(RuntimeError, match="a node without users, got relu, which tanh use"):
        graph.erase_node(relu)
    tanh.args = relu.args
    graph.erase_node(relu)
    graph.lint()
    module.recompile()
    x, y = treadle.randn(3), treadle.randn(3)
    assert treadle.equal(module(x, y), -treadle.tanh(x + y))


def test_lint_finds_what_is_not_sound() -> None:
    graph = small().graph
    add = next(n for n in graph.nodes if n.name == "add")
    graph.output_node().append(add)
    with pytest.raises(RuntimeError, match="^Graph.lint: expected the argument add of relu before"):
        graph.lint()
    module = fx.symbolic_trace(Net())
    with pytest.warns(UserWarning, match="the submodule nothing, which is to be added before"):
        module.graph.call_module("nothing")
    with pytest.raises(RuntimeError, match="expected the module to have nothing"):
        module.graph.lint()


def test_dead_code() -> None:
    def program(x):
        x.exp()
        x.add_(1)
        treadle._assert(x.sum() > 0, "positive")
        return x * 2

    traced = fx.symbolic_trace(program)
    assert traced.graph.eliminate_dead_code()
    assert [n.name for n in traced.graph.nodes] == [
        "x",
        "add_",
        "sum_1",
        "gt",
        "_assert",
        "mul",
        "output",
    ]
    assert not traced.graph.eliminate_dead_code()


def test_names_are_unique_and_no_words_of_the_language() -> None:
    graph = fx.Graph()
    names = [graph.placeholder(name).name for name in ("x", "x", "x_1", "class", "1a", "len")]
    assert names == ["x", "x_1", "x_2", "class_1", "_1a", "len_1"]


def test_graphs_made_by_hand() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=List[int])
    w = graph.get_attr("w")
    out = graph.call_function(operator.mul, (x, w))
    graph.output(out, type_expr=treadle.Tensor)
    module = fx.GraphModule({"w": treadle.tensor([2, 3])}, graph, "Made")
    assert "def forward(self, x : typing_List[int]) -> treadle.Tensor:" in module.code
    assert module(treadle.tensor([1, 1])).tolist() == [2, 3] and type(module).__name__ == "Made"
    x = fx.Proxy(fx.Graph().placeholder("x"))
    assert ((x + 1) * x).node.name == "mul"
    with pytest.raises(RuntimeError, match="expected the dictionary to have w"):
        fx.GraphModule({}, graph)


def test_copies_of_graphs() -> None:
    first, second = fx.Graph(), fx.symbolic_trace(lambda a: a.exp() + 1).graph
    x = first.placeholder("x")
    result = first.graph_copy(second, {next(iter(second.nodes)): x})
    first.output(result)
    assert [n.name for n in first.nodes] == ["x", "exp", "add", "output"]
    twin = copy.deepcopy(first)
    assert str(twin) == str(first) and set(twin.nodes).isdisjoint(first.nodes)


def test_code_can_be_changed() -> None:
    module = small()

    def add_print(body: List[str]) -> List[str]:
        return ["calls.append(1)\n", *body]

    with module.graph.on_generate_code(lambda before: add_print):
        source = module.graph.python_code("self")
    assert "calls.append(1)" in source.src and "calls" not in module.code

    class Twice(fx.CodeGen):
        def generate_output(self, output_args):
            return f"return ({output_args}, {output_args})"

    module.graph.set_codegen(Twice())
    module.recompile()
    a, b = module(treadle.ones(1), treadle.ones(1))
    assert a.item() == b.item() == -2


# ---- modules of graphs ----


def test_copies_and_pickles() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    x = treadle.randn(2, 3)
    expected = traced(x)
    twin = copy.deepcopy(traced)
    assert twin.code == traced.code and twin.scale is not traced.scale
    again = pickle.loads(pickle.dumps(traced))
    assert again.code == traced.code and type(again).__name__ == "Net"
    for module in (twin, again, copy.copy(traced)):
        assert isinstance(module, fx.GraphModule) and treadle.equal(module(x), expected)


def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = fx.symbolic_trace(Net())
    traced.to_folder(tmp_path / "made_by_fx", "Made")
    monkeypatch.syspath_prepend(str(tmp_path))
    import made_by_fx

    x = treadle.randn(1, 3)
    assert treadle.equal(made_by_fx.Made()(x), traced(x))


def test_submodules() -> None:
    traced = fx.symbolic_trace(Net())
    assert traced.add_submodule("extra.inner", nn.ReLU())
    assert isinstance(traced.extra.inner, nn.ReLU)
    assert traced.delete_submodule("extra.inner") and not traced.delete_submodule("extra.inner")
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "extra") and hasattr(traced.blocks, "0")


def test_text(capsys: pytest.CaptureFixture) -> None:
    traced = fx.symbolic_trace(Block())
    text = traced.print_readable(print_output=False)
    assert text.startswith("class Block(treadle.nn.Module):\n    def forward(self, x : treadle.")
    assert capsys.readouterr().out == ""
    assert str(traced).endswith(
        "# To see more debug info, please use `graph_module.print_readable()`"
    )


# ---- interpreters ----


def test_interpreter_and_transformer() -> None:
    module = small()
    x, y = treadle.randn(3), treadle.randn(3)

    class Swap(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(
                treadle.tanh if target is treadle.relu else target, args, kwargs
            )

    assert treadle.equal(fx.Interpreter(module).run(x, y), module(x, y))
    assert treadle.equal(Swap(module).run(x, y), -treadle.tanh(x + y))

    class SwapIn(fx.Transformer):
        def call_method(self, target, args, kwargs):
            return super().call_method("abs" if target == "neg" else target, args, kwargs)

    changed = SwapIn(module).transform()
    assert treadle.equal(changed(x, y), treadle.relu(x + y).abs())
    with pytest.raises(RuntimeError, match="While executing %add : "):
        fx.Interpreter(module).run(x, treadle.ones(5))
    with pytest.raises(RuntimeError, match="^Interpreter: expected an argument for y, got too few"):
        fx.Interpreter(module).run(x)


def test_replace_pattern() -> None:
    def program(x, w1, w2):
        m1 = treadle.cat([w1, w2]).sum()
        m2 = treadle.cat([w2, w1]).sum()
        return x + treadle.max(m1) + treadle.max(m2)

    traced = fx.symbolic_trace(program)
    found = fx.replace_pattern(
        traced, lambda a, b: treadle.cat([a, b]).sum(), lambda a, b: treadle.stack([a, b])
    )
    assert len(found) == 2 and found[0].anchor.name == "sum_1"
    assert traced.code.count("treadle.stack") == 2 and "cat" not in traced.code
    one = treadle.ones(2)
    assert traced(one, one, one * 2).tolist() == [5, 5]


def test_shape_prop() -> None:
    traced = fx.symbolic_trace(Block())
    fx.passes.shape_prop.ShapeProp(traced).propagate(treadle.ones(2, 3))
    meta = traced.graph.output_node().args[0].meta["tensor_meta"]
    assert meta.shape == (2, 3) and meta.dtype == treadle.float32 and meta.stride == (3, 1)


def test_split_module() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    order = {n: i for i, n in enumerate(traced.graph.nodes)}
    names: Dict[str, str] = {}
    parts = fx.passes.split_module.split_module(
        traced, net, lambda node: int(order[node] > 8), qualname_map=names
    )
    assert [name for name, _ in parts.named_children()] == ["submod_0", "submod_1"]
    x = treadle.randn(2, 3)
    assert treadle.equal(parts(x), net(x))
    assert names["submod_0.blocks.0.linear"] == "blocks.0.linear"
    with pytest.raises(RuntimeError, match="expected parts of which none needs a later one"):
        fx.passes.split_module.split_module(traced, net, lambda node: order[node] % 2)


# ---- recordings ----


def test_make_fx() -> None:
    from treadle.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

    def program(x, d):
        y = treadle.cat([F.relu(x + d["a"]), treadle.zeros(2, x.shape[1])])
        a, b = y.split(2)
        a.add_(1)
        return {"sum": y.sum(), "top": (a.max(dim=1).values, b)}

    assert get_proxy_mode() is None
    x, a = treadle.randn(2, 3), treadle.randn(3)
    made = make_fx(program)(x, {"a": a})
    expected = program(x, {"a": a})
    got = made(x, a)
    assert treadle.equal(got["sum"], expected["sum"])
    assert treadle.equal(got["top"][0], expected["top"][0])
    assert "zeros = treadle.zeros(2, 3)" in made.code
    with pytest.raises(NotImplementedError, match="^make_fx: expected no decomposition_table"):
        make_fx(program, decomposition_table={1: 2})


def test_recordings_notice_what_is_fixed() -> None:
    from treadle.fx._record import record

    one = treadle.ones(1)
    assert record(lambda x: x + 1 if x > 0 else x, (one,)).recorder.escapes == ["__bool__"]
    assert record(lambda x: x * x.item() + int(x), (one,)).recorder.escapes == ["item", "__int__"]
    assert record(lambda x: x * x.shape[0], (one,)).recorder.escapes == []


def test_classes_that_wrap_tensors() -> None:
    from treadle.utils import _python_dispatch as modes

    class Pair(treadle.Tensor):
        def __tensor_flatten__(self):
            return ["left"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, size, stride):
            return inner["left"].as_subclass(Pair)

    pair = treadle.ones(2).as_subclass(Pair)
    pair.left = treadle.ones(2)
    assert modes.is_traceable_wrapper_subclass(pair)
    assert not modes.is_traceable_wrapper_subclass(treadle.ones(2))
    assert modes.transform_subclass(pair, lambda name, t: t + 1).tolist() == [2, 2]
    with modes.BaseTorchDispatchMode():
        assert (pair * 2).tolist() == [2, 2]


def test_einsum_has_one_form() -> None:
    traced = fx.symbolic_trace(lambda a, b: treadle.einsum("ij,jk->ik", [a, b]))
    node = traced.graph.find_nodes(op="call_function")[0]
    assert node.target is treadle.einsum and len(node.args) == 3
    a = treadle.ones(2, 2)
    assert treadle.equal(traced(a, a), a @ a)
