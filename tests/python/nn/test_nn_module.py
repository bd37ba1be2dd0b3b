"""Module and its parts: names, attributes, state dicts, dtypes, copies, reprs, hooks."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import pickle
import typing
from collections import OrderedDict

import pytest

import treadle
from treadle import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.scale = nn.Parameter(treadle.ones(2))
        self.register_buffer("count", treadle.zeros(1))
        self.register_buffer("hidden", treadle.zeros(1), persistent=False)

    def forward(self, x):
        return self.layer(x) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.again = self.first

    def forward(self, x):
        return self.second(self.first(x))


def test_names():
    net = Net()
    assert [name for name, _ in net.named_modules()] == [
        "",
        "first",
        "first.layer",
        "second",
        "second.layer",
    ]
    parameters = [name for name, _ in net.named_parameters()]
    assert parameters[:3] == ["first.scale", "first.layer.weight", "first.layer.bias"]
    assert len(parameters) == 6
    assert len(list(net.named_parameters(remove_duplicate=False))) == 9
    assert [name for name, _ in net.named_buffers()][:2] == ["first.count", "first.hidden"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert len(list(net.parameters(recurse=False))) == 0
    assert net.get_submodule("first.layer") is net.first.layer
    assert net.get_parameter("second.layer.bias") is net.second.layer.bias
    assert net.get_buffer("first.count") is net.first.count
    with pytest.raises(AttributeError, match="Net has no attribute `third`"):
        net.get_submodule("third")


def test_attributes():
    block = Block()
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'scale'"):
        block.scale = treadle.ones(2)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'layer'"):
        block.layer = 3
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'count'"):
        block.count = "three"
    with pytest.raises(AttributeError, match="'Block' object has no attribute 'absent'"):
        _ = block.absent
    block.scale = None
    assert block.scale is None and "scale" not in dict(block.named_parameters())
    block.count = treadle.ones(1)
    assert dict(block.named_buffers())["count"].item() == 1
    block.layer = nn.ReLU()
    assert len(list(block.parameters())) == 0
    del block.layer
    assert not hasattr(block, "layer")
    block.plain = 3
    block.plain = nn.Parameter(treadle.ones(1))
    assert "plain" in dict(block.named_parameters()) and "plain" not in block.__dict__


def test_registering_errors():
    block = Block()
    with pytest.raises(KeyError, match="already exists"):
        block.register_parameter("layer", None)
    with pytest.raises(KeyError, match="name can"):
        block.register_buffer("a.b", treadle.zeros(1))
    with pytest.raises(TypeError, match="nn.Parameter or None required"):
        block.register_parameter("new", treadle.zeros(1))
    with pytest.raises(TypeError, match="is not a Module subclass"):
        block.add_module("new", 3)
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()()

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="before Module.__init__"):
        Early()


def test_state_dict():
    net, other = Net(), Net()
    state = net.state_dict()
    assert "first.hidden" not in state and "again.layer.weight" in state
    assert state["first.scale"].data_ptr() == net.first.scale.data_ptr()
    assert not state["first.scale"].requires_grad
    assert repr(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert treadle.equal(other.second.layer.weight, net.second.layer.weight)
    assert state._metadata["first"] == {"version": 1}


def test_state_dict_errors():
    net = nn.Sequential(nn.Linear(2, 3))
    state = OrderedDict(net.state_dict())
    state["0.extra"] = treadle.zeros(1)
    state["weight"] = treadle.zeros((2, 2))
    del state["0.bias"]
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "weight", "0.extra". '
    )
    keys = net.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["0.bias"] and keys.unexpected_keys == ["weight", "0.extra"]
    state["0.weight"] = treadle.zeros((5, 5))
    with pytest.raises(
        RuntimeError, match="size mismatch for 0.weight: copying a param with shape"
    ):
        net.load_state_dict(state, strict=False)
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])
    with pytest.raises(RuntimeError, match="expected a Tensor from the checkpoint, got int"):
        net.load_state_dict({"0.weight": 3, "0.bias": treadle.zeros(3)})


def test_assigning_a_state_dict():
    source, net = nn.Linear(2, 3).double(), nn.Linear(2, 3)
    net.load_state_dict(source.state_dict(), assign=True)
    assert net.weight.dtype == treadle.float64 and isinstance(net.weight, nn.Parameter)


def test_dtype_and_mode():
    net = Net()
    weight = net.first.layer.weight
    assert net.double() is net and net.first.layer.weight is weight
    assert weight.dtype == treadle.float64 and net.first.count.dtype == treadle.float64
    net.to(treadle.float32).to("cpu").to(treadle.zeros(1))
    assert weight.dtype == treadle.float32
    with pytest.raises(TypeError, match="floating-point or complex dtype"):
        net.to(treadle.int64)
    assert not any(module.training for module in net.eval().modules())
    assert all(module.training for module in net.train().modules())
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_apply_and_zero_grad():
    net, seen = Net(), []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Block", "Linear", "Block", "Net"]
    net(treadle.ones((1, 2))).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(parameter.grad.abs().sum().item() == 0 for parameter in net.parameters())
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_copies_are_apart():
    net = Net()
    copied = copy.deepcopy(net)
    assert copied.again is copied.first
    with treadle.no_grad():
        copied.first.scale.add_(1)
    assert net.first.scale.tolist() == [1, 1] and copied.again.scale.tolist() == [2, 2]
    loaded = pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2))))
    assert isinstance(loaded[0].weight, nn.Parameter) and loaded[1].running_mean.shape == (2,)


def test_reprs():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1, bias=False),
        nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(inplace=True)]),
        nn.MaxPool2d(2),
        nn.Dropout(0.1),
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
        "    (2): ReLU(inplace=True)\n"
        "  )\n"
        "  (2): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n"
        "  (3): Dropout(p=0.1, inplace=False)\n"
        ")"
    )
    assert repr(nn.BatchNorm2d(3)) == (
        "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)"
    )
    assert repr(nn.Module()) == "Module()" and repr(nn.ModuleList()) == "ModuleList()"
    assert repr(nn.CrossEntropyLoss()) == "CrossEntropyLoss()"
    assert repr(nn.ParameterList([treadle.zeros((2, 3))])) == (
        "ParameterList(  (0): Parameter containing: [treadle.float32 of size 2x3])"
    )


# ---- hooks -------------------------------------------------------------------------------------


def test_forward_hooks():
    layer, seen = nn.ReLU(), []
    before = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    after = layer.register_forward_hook(lambda module, args, output: output * 10)
    layer.register_forward_hook(lambda module, args, output: seen.append(output.item()))
    assert layer(treadle.tensor(1.0)).item() == 20 and seen == [20]
    before.remove()
    with after:
        assert layer(treadle.tensor(1.0)).item() == 10
    assert layer(treadle.tensor(1.0)).item() == 1


def test_hooks_with_names_and_after_failures():
    class Scaled(nn.Module):
        def forward(self, x, *, by):
            if by == 0:
                raise ValueError("nothing left")
            return x * by

    layer, seen = Scaled(), []
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True
    )
    layer.register_forward_hook(
        lambda m, args, kwargs, output: seen.append((kwargs["by"], output)),
        with_kwargs=True,
        always_call=True,
    )
    assert layer(treadle.tensor(2.0), by=2).item() == 6
    with pytest.raises(ValueError, match="nothing left"):
        layer(treadle.tensor(2.0), by=-1)
    assert seen[0][0] == 3 and seen[1] == (0, None)


def test_full_backward_hooks():
    layer, seen = nn.Linear(2, 1, bias=False), []
    with treadle.no_grad():
        layer.weight.copy_(treadle.tensor([[3.0, 4.0]]))
    layer.register_full_backward_pre_hook(lambda module, grads: seen.append("pre"))
    handle = layer.register_full_backward_hook(
        lambda module, inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist()))
    )
    x = treadle.ones((1, 2), requires_grad=True)
    (layer(x) * 2).sum().backward()
    assert seen == ["pre", ([[6.0, 8.0]], [[2.0]])]
    handle.remove()
    layer.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 10,))
    x.grad = None
    layer(x).sum().backward()
    assert x.grad.tolist() == [[30.0, 40.0]]


def test_backward_hook_without_input_gradients():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda module, inputs, outputs: seen.append(inputs))
    layer(treadle.ones((1, 2))).sum().backward()
    assert seen == [(None,)] and layer.weight.grad is not None


def test_loading_into_parameters_without_memory_warns():
    with treadle.device("meta"):
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    state = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict()
    with pytest.warns(UserWarning) as warned:
        net.load_state_dict(state)
    assert [str(w.message) for w in warned] == [
        f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in "
        "the current model, which is a no-op. (Did you mean to pass `assign=True` to assign items "
        "in the state dictionary to their corresponding key in the module instead of copying them "
        "in place?)"
        for key in state
    ]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.load_state_dict(state, assign=True)
        net.load_state_dict(state)
        net.to("meta").load_state_dict(net.state_dict())


def test_hints_of_a_module() -> None:
    hints = typing.get_type_hints(treadle.nn.CrossEntropyLoss())
    assert hints["training"] is bool


def test_backward_hooks_leave_what_needs_no_gradient_as_it_is():
    seen = []

    class Second(nn.Module):
        def forward(self, a, b):
            seen.append((a.requires_grad, b.requires_grad))
            return a * 2, b * 2, a * 3

    module = Second()
    grads = []
    module.register_full_backward_hook(lambda module, inputs, outputs: grads.append(outputs))
    x = treadle.ones(2, requires_grad=True)
    doubled, constant, unused = module(x, treadle.ones(2))
    assert seen == [(True, False)]
    assert doubled.requires_grad and not constant.requires_grad
    doubled.sum().backward()
    (outputs,) = grads
    assert treadle.equal(outputs[0], treadle.ones(2)) and outputs[1:] == (None, None)


def test_backward_hooks_may_return_no_gradients_where_there_are_none():
    layer = nn.Linear(2, 3)
    layer.register_full_backward_hook(lambda module, inputs, outputs: inputs)
    with pytest.warns(UserWarning):
        layer(treadle.ones(1, 2)).sum().backward()
    assert layer.bias.grad.tolist() == [1.0, 1.0, 1.0]


def test_loading_keeps_no_tensor_for_the_collector() -> None:
    module = nn.LSTM(4, 4)
    state = copy.deepcopy(module).state_dict()
    gc.collect()
    module.load_state_dict(state)
    assert gc.collect() == 0


def test_batches_seen_stay_where_a_checkpoint_does_not_count_them() -> None:
    layer = nn.BatchNorm1d(3)
    layer.num_batches_tracked = treadle.tensor(10)
    layer.load_state_dict(OrderedDict(), strict=False)
    assert layer.num_batches_tracked.item() == 10
