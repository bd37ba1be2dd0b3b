"""Layers, losses and initial values against NumPy in float64, and what Module does with its
parts."""

import copy
import math
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import treadle
from treadle import nn
from treadle.nn import functional as F

rng = np.random.default_rng(0)


def array(*shape):
    return rng.normal(size=shape)


def tensor(values, **kwargs):
    return treadle.tensor(values, **kwargs)


def check(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def double(layer):
    return layer.double()


# ---- layers --------------------------------------------------------------------------------------


def test_linear():
    layer = double(nn.Linear(3, 4))
    x = array(2, 5, 3)
    check(layer(tensor(x)), x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy())
    assert nn.Linear(3, 4, bias=False).bias is None


def test_bilinear():
    layer = double(nn.Bilinear(3, 4, 5))
    a, b = array(2, 6, 3), array(2, 6, 4)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    check(layer(tensor(a), tensor(b)), np.einsum("xyi,kij,xyj->xyk", a, weight, b) + bias)


def convolved(x, weight, bias, stride, padding, dilation, groups):
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    outputs, per_group, kh, kw = weight.shape
    height = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    result = np.zeros((x.shape[0], outputs, height, width))
    for o in range(outputs):
        first = o // (outputs // groups) * per_group
        for i in range(height):
            for j in range(width):
                top, left = i * stride[0], j * stride[1]
                window = x[
                    :,
                    first : first + per_group,
                    top : top + dilation[0] * (kh - 1) + 1 : dilation[0],
                    left : left + dilation[1] * (kw - 1) + 1 : dilation[1],
                ]
                result[:, o, i, j] = (window * weight[o]).sum((1, 2, 3)) + bias[o]
    return result


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stride": 2},
        {"padding": (1, 2)},
        {"dilation": 2},
        {"groups": 2},
        {"stride": (2, 1), "padding": 1, "dilation": (1, 2), "groups": 2},
    ],
    ids=str,
)
def test_conv2d(settings):
    layer = double(nn.Conv2d(4, 6, (3, 2), **settings))
    x = array(2, 4, 7, 8)
    expected = convolved(
        x,
        layer.weight.detach().numpy(),
        layer.bias.detach().numpy(),
        layer.stride,
        layer.padding,
        layer.dilation,
        layer.groups,
    )
    check(layer(tensor(x)), expected)


@pytest.mark.parametrize("kernel", [3, (3, 2), (4, 5)])
def test_conv2d_same_padding(kernel):
    layer = double(nn.Conv2d(2, 3, kernel, padding="same"))
    x = array(1, 2, 6, 7)
    total = [size - 1 for size in layer.kernel_size]
    padded = np.pad(x, ((0, 0), (0, 0), *((t // 2, t - t // 2) for t in total)))
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    check(layer(tensor(x)), convolved(padded, weight, bias, (1, 1), (0, 0), (1, 1), 1))
    assert nn.Conv2d(2, 3, 3, padding="valid")(treadle.zeros((1, 2, 6, 7))).shape == (1, 3, 4, 5)


def test_pooling():
    x = array(2, 3, 6, 8)
    windows = x.reshape(2, 3, 3, 2, 4, 2)
    check(nn.MaxPool2d(2)(tensor(x)), windows.max((3, 5)))
    check(nn.AvgPool2d(2)(tensor(x)), windows.mean((3, 5)))
    values, places = nn.MaxPool2d(2, return_indices=True)(tensor(x))
    flat = x.reshape(2, 3, -1)
    check(
        values, np.take_along_axis(flat, places.numpy().reshape(2, 3, -1), 2).reshape(values.shape)
    )


def test_batch_norm():
    layer = double(nn.BatchNorm2d(3, momentum=0.2))
    with treadle.no_grad():
        layer.weight.copy_(tensor([1.0, 2.0, 3.0]))
        layer.bias.copy_(tensor([0.5, 0.0, -0.5]))
    x = array(4, 3, 2, 5) * 3 + 1
    weight, bias = (p.detach().numpy()[:, None, None] for p in (layer.weight, layer.bias))
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    normal = (x - mean[:, None, None]) / np.sqrt(variance[:, None, None] + layer.eps)
    check(layer(tensor(x)), normal * weight + bias)
    count = x.size / 3
    running_mean = 0.2 * mean
    running_var = 0.8 + 0.2 * variance * count / (count - 1)
    check(layer.running_mean, running_mean)
    check(layer.running_var, running_var)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    shifted = (x - running_mean[:, None, None]) / np.sqrt(running_var[:, None, None] + layer.eps)
    check(layer(tensor(x)), shifted * weight + bias)
    assert layer.num_batches_tracked.item() == 1


def test_batch_norm_variants():
    average = double(nn.BatchNorm1d(2, momentum=None, affine=False))
    batches = [array(5, 2), array(5, 2)]
    for batch in batches:
        average(tensor(batch))
    check(average.running_mean, np.mean([batch.mean(0) for batch in batches], 0))
    plain = double(nn.BatchNorm1d(2, track_running_stats=False)).eval()
    x = array(5, 2)
    check(plain(tensor(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
    assert plain.running_mean is None
    with pytest.raises(ValueError, match="expected 4D input"):
        nn.BatchNorm2d(2)(treadle.zeros((3, 2)))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(2)(treadle.zeros((1, 2)))


def test_layer_norm():
    layer = double(nn.LayerNorm((3, 4)))
    x = array(2, 3, 4) * 2 + 5
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    check(layer(tensor(x)), (x - mean) / np.sqrt(variance + 1e-5))
    assert nn.LayerNorm(3, bias=False).bias is None and nn.LayerNorm(3).weight.shape == (3,)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    "layer, expected",
    [
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
        (nn.GELU(), gelu),
        (nn.GELU("tanh"), gelu_tanh),
        (nn.SiLU(), lambda x: x * sigmoid(x)),
        (nn.Sigmoid(), sigmoid),
        (nn.Tanh(), np.tanh),
        (nn.Softmax(1), lambda x: softmax(x, 1)),
        (nn.Softmin(1), lambda x: softmax(-x, 1)),
        (nn.LogSoftmax(0), lambda x: np.log(softmax(x, 0))),
        (nn.Identity(3, any="thing"), lambda x: x),
    ],
    ids=lambda v: repr(v) if isinstance(v, nn.Module) else "",
)
def test_activations(layer, expected):
    x = array(4, 5) * 3
    check(layer(tensor(x)), expected(x))


def test_inplace_activations():
    for layer in (nn.ReLU(inplace=True), nn.LeakyReLU(0.1, inplace=True), nn.SiLU(inplace=True)):
        x = treadle.tensor([-1.0, 2.0])
        assert layer(x).data_ptr() == x.data_ptr()


def test_softmax_without_dim_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        check(nn.Softmax()(tensor([[1.0, 1.0]])), [[0.5, 0.5]])


def test_dropout():
    treadle.manual_seed(0)
    layer, x = nn.Dropout(0.25), treadle.ones((100, 100))
    y = layer(x)
    kept = (y != 0).to(treadle.float32).mean().item()
    assert abs(kept - 0.75) < 0.02
    assert set(np.unique(y.numpy().round(4))) == {0.0, np.float32(1 / 0.75).round(4)}
    assert treadle.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


def test_flatten_and_unflatten():
    x = treadle.arange(24).reshape((2, 3, 4))
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(1, (3, 4))(nn.Flatten()(x)).tolist() == x.tolist()
    assert nn.Unflatten(-1, (2, 2))(x).shape == (2, 3, 2, 2)


def test_embedding():
    layer = double(nn.Embedding(5, 3, padding_idx=-1))
    assert layer.padding_idx == 4 and layer.weight[4].tolist() == [0, 0, 0]
    index = treadle.tensor([[0, 4], [2, 0]])
    y = layer(index)
    check(y, layer.weight.detach().numpy()[index.numpy()])
    y.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [2, 0, 1, 0, 0]
    frozen = nn.Embedding.from_pretrained(treadle.ones((2, 3)))
    assert not frozen.weight.requires_grad and frozen(treadle.tensor([1])).tolist() == [[1, 1, 1]]


def test_embedding_max_norm():
    layer = nn.Embedding.from_pretrained(treadle.tensor([[3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    assert layer(treadle.tensor([0, 1])).numpy() == pytest.approx(
        np.array([[0.6, 0.8], [0.3, 0.4]])
    )


# ---- losses --------------------------------------------------------------------------------------


def reduced(values, how):
    return {"none": values, "mean": values.mean(), "sum": values.sum()}[how]


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_elementwise_losses(how):
    x, t = array(3, 4), array(3, 4)
    p, y = sigmoid(x), (t > 0).astype(float)
    check(nn.MSELoss(reduction=how)(tensor(x), tensor(t)), reduced((x - t) ** 2, how))
    check(nn.L1Loss(reduction=how)(tensor(x), tensor(t)), reduced(np.abs(x - t), how))
    entropy = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    check(nn.BCELoss(reduction=how)(tensor(p), tensor(y)), reduced(entropy, how))
    check(nn.BCEWithLogitsLoss(reduction=how)(tensor(x), tensor(y)), reduced(entropy, how))
    positive = nn.BCEWithLogitsLoss(reduction=how, pos_weight=tensor([1.0, 2.0, 3.0, 4.0]).double())
    weighted = -(y * np.log(p) * np.array([1, 2, 3, 4]) + (1 - y) * np.log(1 - p))
    check(positive(tensor(x), tensor(y)), reduced(weighted, how))


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
def test_losses_with_a_linear_part(how):
    x, t = array(3, 4) * 2, array(3, 4)
    d = np.abs(x - t)
    smooth = np.where(d < 0.5, d**2, d - 0.25)
    check(nn.SmoothL1Loss(reduction=how, beta=0.5)(tensor(x), tensor(t)), reduced(smooth, how))
    huber = np.where(d < 0.5, 0.5 * d**2, 0.5 * (d - 0.25))
    check(nn.HuberLoss(how, delta=0.5)(tensor(x), tensor(t)), reduced(huber, how))


def test_divergence():
    log_q, p = np.log(softmax(array(3, 4), 1)), softmax(array(3, 4), 1)
    values = p * (np.log(p) - log_q)
    check(nn.KLDivLoss(reduction="batchmean")(tensor(log_q), tensor(p)), values.sum() / 3)
    logs = nn.KLDivLoss(reduction="sum", log_target=True)
    check(logs(tensor(log_q), tensor(np.log(p))), values.sum())


def test_weighted_elements():
    x, t, w = array(3, 4), array(3, 4), np.abs(array(3, 4))
    check(F.mse_loss(tensor(x), tensor(t), weight=tensor(w)), (w * (x - t) ** 2).sum() / w.sum())
    check(
        F.l1_loss(tensor(x), tensor(t), weight=tensor(w), reduction="sum"), (w * abs(x - t)).sum()
    )


def test_pad():
    x = array(2, 3)
    check(F.pad(tensor(x), (1, 2), value=5.0), np.pad(x, ((0, 0), (1, 2)), constant_values=5.0))
    check(F.pad(tensor(x), (-1, 0, 1, 0)), np.pad(x, ((1, 0), (0, 0)))[:, 1:])


def test_logits_loss_does_not_overflow():
    x = tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, tensor([0.0, 1.0]))
    assert loss.item() == 1000.0
    loss.backward()
    assert x.grad.tolist() == [0.5, -0.5]


def test_bce_at_its_bounds():
    p = tensor([0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(p, tensor([1.0, 1.0]), reduction="sum")
    assert loss.item() == 100.0
    loss.backward()
    assert all(math.isfinite(value) for value in p.grad.tolist())
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(tensor([1.5]), tensor([1.0]))


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(how, weighted):
    x, classes = array(6, 4), np.array([0, 3, 1, -100, 2, 1])
    weight = np.array([1.0, 2.0, 0.5, 3.0]) if weighted else np.ones(4)
    used = classes != -100
    scale = np.where(used, weight[np.where(used, classes, 0)], 0.0)
    values = -np.log(softmax(x, 1))[np.arange(6), np.where(used, classes, 0)] * scale
    expected = values.sum() / scale.sum() if how == "mean" else reduced(values, how)
    given = tensor(weight) if weighted else None
    check(nn.CrossEntropyLoss(given, reduction=how)(tensor(x), tensor(classes)), expected)
    log = F.log_softmax(tensor(x), 1)
    check(nn.NLLLoss(given, reduction=how)(log, tensor(classes)), expected)


def test_cross_entropy_of_probabilities_and_smoothing():
    x, p = array(5, 4), softmax(array(5, 4), 1)
    log = np.log(softmax(x, 1))
    check(nn.CrossEntropyLoss()(tensor(x), tensor(p)), -(p * log).sum(1).mean())
    classes = np.array([0, 3, 1, 2, 1])
    smooth = np.eye(4)[classes] * 0.9 + 0.1 / 4
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    check(loss(tensor(x), tensor(classes)), -(smooth * log).sum(1).mean())


def test_loss_errors():
    with pytest.raises(ValueError, match="most is not a valid value for reduction"):
        F.mse_loss(treadle.zeros(2), treadle.zeros(2), reduction="most")
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(treadle.zeros((2, 1)), treadle.zeros((1, 2)))
    with pytest.raises(ValueError, match="target of the input's size"):
        F.binary_cross_entropy(treadle.zeros(2), treadle.zeros(3))


def test_one_hot_and_normalize():
    assert F.one_hot(treadle.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(treadle.tensor([[1]]), 3).tolist() == [[[0, 1, 0]]]
    with pytest.raises(RuntimeError, match="classes < num_classes = 2, got 2"):
        F.one_hot(treadle.tensor([0, 2]), 2)
    x = array(3, 4)
    check(F.normalize(tensor(x)), x / np.linalg.norm(x, axis=1, keepdims=True))


# ---- initial values ------------------------------------------------------------------------------


def bounds(layer_bound, values):
    largest = values.abs().max().item()
    return 0.8 * layer_bound < largest <= layer_bound


def test_default_initial_values():
    treadle.manual_seed(0)
    linear, conv = nn.Linear(100, 50), nn.Conv2d(8, 16, 5)
    assert bounds(1 / 10, linear.weight) and bounds(1 / 10, linear.bias)
    assert bounds(1 / math.sqrt(200), conv.weight) and bounds(1 / math.sqrt(200), conv.bias)
    embedding = nn.Embedding(200, 50)
    assert abs(embedding.weight.std().item() - 1) < 0.05
    treadle.manual_seed(0)
    assert treadle.equal(nn.Linear(100, 50).weight, linear.weight)


def test_init_functions():
    treadle.manual_seed(0)
    w = treadle.empty((200, 100))
    assert bounds(math.sqrt(6 / 300), nn.init.xavier_uniform_(w))
    assert abs(nn.init.xavier_normal_(w, gain=2).std().item() / (2 * math.sqrt(2 / 300)) - 1) < 0.05
    assert bounds(
        math.sqrt(2) * math.sqrt(3 / 100), nn.init.kaiming_uniform_(w, nonlinearity="relu")
    )
    spread = nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu").std().item()
    assert abs(spread / math.sqrt(2 / 200) - 1) < 0.05
    assert nn.init.constant_(w, 3.0).min().item() == 3.0
    assert nn.init.ones_(w).sum().item() == 20000 and nn.init.zeros_(w).sum().item() == 0
    assert nn.init.eye_(treadle.empty((2, 3))).tolist() == [[1, 0, 0], [0, 1, 0]]
    values = nn.init.trunc_normal_(w, std=1.0, a=-0.5, b=1.0)
    assert values.min().item() >= -0.5 and values.max().item() <= 1.0
    assert 2.9 < nn.init.uniform_(w, 1.0, 3.0).max().item() < 3.0
    for size in ((3, 5), (5, 3), (4, 2, 3)):
        q = (
            nn.init.orthogonal_(treadle.empty(size, dtype=treadle.float64))
            .numpy()
            .reshape(size[0], -1)
        )
        product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)
    x = treadle.randn((1, 2, 5, 5))
    delta = nn.init.dirac_(treadle.empty((2, 2, 3, 3)))
    assert treadle.equal(F.conv2d(x, delta, padding=1), x)


def test_gain():
    assert nn.init.calculate_gain("relu") == math.sqrt(2)
    assert nn.init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    assert nn.init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="Unsupported nonlinearity cubic"):
        nn.init.calculate_gain("cubic")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(treadle.empty(3))


# ---- Module --------------------------------------------------------------------------------------


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
        "ParameterList((0): Parameter containing: [treadle.float32 of size 2x3])"
    )


# ---- hooks ---------------------------------------------------------------------------------------


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


# ---- containers ----------------------------------------------------------------------------------


def test_sequential():
    net = nn.Sequential(OrderedDict([("a", nn.Linear(1, 2)), ("b", nn.ReLU())]))
    assert net.a is net[0] and net[-1] is net.b and len(net[:1]) == 1
    net.append(nn.Tanh())
    assert list(net._modules) == ["a", "b", "2"]
    del net[0]
    assert list(net._modules) == ["0", "1"] and isinstance(net[0], nn.ReLU)
    net.insert(0, nn.Identity())
    assert [type(module).__name__ for module in net] == ["Identity", "ReLU", "Tanh"]
    net[0] = nn.Sigmoid()
    assert isinstance(net.pop(0), nn.Sigmoid) and len(net + net) == 4
    with pytest.raises(IndexError):
        net[5]


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    layers.append(nn.Tanh()).extend([nn.Sigmoid()])
    layers.insert(0, nn.Identity())
    assert [type(layer).__name__ for layer in layers] == [
        "Identity",
        "Linear",
        "ReLU",
        "Tanh",
        "Sigmoid",
    ]
    del layers[0]
    assert (
        isinstance(layers[-1], nn.Sigmoid)
        and len(layers[1:3]) == 2
        and len(list(layers.parameters())) == 2
    )
    layers += [nn.ReLU()]
    assert len(layers) == 5 and nn.Tanh in map(type, layers)


def test_module_dict():
    layers = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    layers["c"] = nn.Tanh()
    layers.update([("a", nn.Identity())])
    assert list(layers) == ["a", "b", "c"] and "b" in layers and len(layers) == 3
    assert isinstance(layers.pop("a"), nn.Identity) and list(layers.keys()) == ["b", "c"]
    layers.clear()
    assert len(layers) == 0


def test_parameter_containers():
    values = nn.ParameterList([treadle.zeros(1), nn.Parameter(treadle.ones(1))])
    values.append(treadle.ones(2))
    assert len(values) == 3 and all(isinstance(value, nn.Parameter) for value in values)
    assert list(values.state_dict()) == ["0", "1", "2"] and values[-1].shape == (2,)
    values[0] = treadle.ones(4)
    assert values[0].shape == (4,) and len(values[1:]) == 2
    named = nn.ParameterDict({"a": treadle.zeros(1)})
    named["b"] = treadle.ones(1)
    assert list(named.keys()) == ["a", "b"] and "a" in named and named.get("z") is None
    del named["a"]
    assert list(dict(named.named_parameters())) == ["b"]


# ---- parameters, gradients, training -------------------------------------------------------------


def test_parameter():
    source = treadle.ones(2)
    parameter = nn.Parameter(source)
    assert (
        parameter.requires_grad and parameter.is_leaf and parameter.data_ptr() == source.data_ptr()
    )
    assert isinstance(parameter, treadle.Tensor) and type(parameter * 1) is treadle.Tensor
    copied = copy.deepcopy(nn.Parameter(source, requires_grad=False))
    assert isinstance(copied, nn.Parameter) and not copied.requires_grad
    with pytest.raises(TypeError, match="expected data to be a Tensor, got list"):
        nn.Parameter([1.0])


def test_clipping():
    params = [
        nn.Parameter(treadle.zeros(2)),
        nn.Parameter(treadle.zeros(1)),
        nn.Parameter(treadle.zeros(1)),
    ]
    params[0].grad, params[1].grad = treadle.tensor([3.0, 0.0]), treadle.tensor([4.0])
    total = nn.utils.clip_grad_norm_(params, 1.0)
    assert total.item() == 5.0
    assert params[0].grad.tolist() == pytest.approx([0.6, 0.0], abs=1e-5)
    assert nn.utils.clip_grad_norm_(params, 10.0, norm_type=math.inf).item() == pytest.approx(0.8)
    nn.utils.clip_grad_value_(params, 0.5)
    assert params[1].grad.item() == 0.5
    params[0].grad = treadle.tensor([math.nan, 0.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(treadle.arange(9).to(treadle.float32), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and layer.bias.tolist() == [6, 7, 8]


@pytest.mark.parametrize(
    "layer, shape",
    [
        (nn.Linear(3, 2), (4, 3)),
        (nn.Conv2d(2, 3, 2, padding=1), (2, 2, 3, 3)),
        (nn.BatchNorm1d(3), (4, 3)),
        (nn.LayerNorm(3), (4, 3)),
        (nn.GELU(), (5,)),
        (nn.SiLU(), (5,)),
        (nn.LogSoftmax(-1), (3, 4)),
        (nn.MaxPool2d(2), (1, 2, 4, 4)),
        (nn.AvgPool2d(2), (1, 2, 4, 4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_gradients(layer, shape):
    treadle.manual_seed(0)
    layer = layer.double()
    x = treadle.randn(shape, dtype=treadle.float64, requires_grad=True)
    assert treadle.autograd.gradcheck(layer, (x,))


def test_a_network_learns():
    treadle.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    points = treadle.randn((200, 2))
    labels = (points[:, 0] * points[:, 1] > 0).to(treadle.int64)
    optimizer = treadle.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(points), labels)
        loss.backward()
        optimizer.step()
    assert (net(points).argmax(1) == labels).to(treadle.float32).mean().item() > 0.95
