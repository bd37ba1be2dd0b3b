"""Cases: activations, padding, pooling, resampling, distances and containers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from .case import Case, given, normal, positive


def _activation(name: str, *arguments: Any, **words: Any) -> Case:
    label = " ".join([name, *map(str, arguments), *(f"{k}={v}" for k, v in words.items())])
    shape = (2, 4, 3, 2) if name == "Softmax2d" else (3, 4)
    return Case(label, lambda nn: getattr(nn, name)(*arguments, **words), normal(*shape), lr=1.0)


ACTIVATIONS = [
    _activation("CELU", alpha=0.7),
    _activation("ELU", alpha=0.7),
    _activation("GELU"),
    _activation("GELU", approximate="tanh"),
    _activation("GLU", dim=1),
    _activation("Hardshrink", 0.3),
    _activation("Hardsigmoid"),
    _activation("Hardswish"),
    _activation("Hardtanh", -0.5, 0.8),
    _activation("LeakyReLU", 0.1),
    _activation("LogSigmoid"),
    _activation("LogSoftmax", dim=1),
    _activation("Mish"),
    _activation("PReLU"),
    _activation("PReLU", 4),
    _activation("ReLU"),
    _activation("ReLU", inplace=False),
    _activation("ReLU6"),
    _activation("SELU"),
    _activation("SiLU"),
    _activation("Sigmoid"),
    _activation("Softmax", dim=1),
    _activation("Softmax2d"),
    _activation("Softmin", dim=1),
    _activation("Softplus", beta=2, threshold=1.5),
    _activation("Softshrink", 0.3),
    _activation("Softsign"),
    _activation("Tanh"),
    _activation("Tanhshrink"),
    _activation("Threshold", 0.1, -0.2),
]


def _padding(name: str, dims: int, *arguments: Any) -> Case:
    shape = (2, 2, *(4, 3, 3)[:dims])
    full = f"{name}{dims}d"
    return Case(full, lambda nn: getattr(nn, full)(*arguments), normal(*shape), lr=2.0)


PADDINGS = [
    *(_padding(name, 1, (2, 1)) for name in ("CircularPad", "ReflectionPad", "ReplicationPad")),
    *(
        _padding(name, 2, (1, 2, 0, 1))
        for name in ("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad")
    ),
    *(
        _padding(name, 3, (1, 2, 0, 1, 2, 1))
        for name in ("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad")
    ),
    _padding("ZeroPad", 1, (2, -1)),
    _padding("ConstantPad", 1, (2, 1), 0.5),
    _padding("ConstantPad", 2, (1, 2, -1, 1), 0.5),
    _padding("ConstantPad", 3, 1, -1.5),
]

SIGNAL, IMAGE, VOLUME = normal(2, 2, 9), normal(2, 2, 7, 6), normal(1, 2, 5, 4, 6)


def _unpool(dims: int) -> Any:
    def call(module: Any, nn: Any, x: Any) -> Any:
        pool = getattr(nn.functional, f"max_pool{dims}d")
        return module(*pool(x, 2, return_indices=True))

    return call


POOLINGS = [
    Case("AdaptiveAvgPool1d", lambda nn: nn.AdaptiveAvgPool1d(4), SIGNAL, lr=1.0),
    Case("AdaptiveAvgPool2d", lambda nn: nn.AdaptiveAvgPool2d((3, None)), IMAGE, lr=1.0),
    Case("AdaptiveAvgPool3d", lambda nn: nn.AdaptiveAvgPool3d(2), VOLUME, lr=1.0),
    Case("AdaptiveMaxPool1d", lambda nn: nn.AdaptiveMaxPool1d(4), SIGNAL, lr=1.0),
    Case("AdaptiveMaxPool2d", lambda nn: nn.AdaptiveMaxPool2d((3, None)), IMAGE, lr=1.0),
    Case("AdaptiveMaxPool3d", lambda nn: nn.AdaptiveMaxPool3d(2), VOLUME, lr=1.0),
    Case("AvgPool1d", lambda nn: nn.AvgPool1d(3, 2, 1), SIGNAL, lr=1.0),
    Case(
        "AvgPool2d",
        lambda nn: nn.AvgPool2d((3, 2), 2, (1, 0), ceil_mode=True, count_include_pad=False),
        IMAGE,
        lr=1.0,
    ),
    Case("AvgPool3d", lambda nn: nn.AvgPool3d(2, 2, divisor_override=3), VOLUME, lr=1.0),
    Case("LPPool1d", lambda nn: nn.LPPool1d(2, 3, 2), positive(2, 2, 9)),
    Case("LPPool2d", lambda nn: nn.LPPool2d(3, (2, 3)), positive(2, 2, 7, 6)),
    Case("LPPool3d", lambda nn: nn.LPPool3d(2, 2), positive(1, 2, 5, 4, 6)),
    Case("MaxPool1d", lambda nn: nn.MaxPool1d(3, 2, 1), SIGNAL, lr=1.0),
    Case("MaxPool2d", lambda nn: nn.MaxPool2d(2, dilation=2, ceil_mode=True), IMAGE, lr=1.0),
    Case("MaxPool3d", lambda nn: nn.MaxPool3d((2, 2, 3), 1), VOLUME, lr=1.0),
    Case("MaxUnpool1d", lambda nn: nn.MaxUnpool1d(2), SIGNAL, call=_unpool(1), lr=1.0),
    Case("MaxUnpool2d", lambda nn: nn.MaxUnpool2d(2), IMAGE, call=_unpool(2), lr=1.0),
    Case("MaxUnpool3d", lambda nn: nn.MaxUnpool3d(2), VOLUME, call=_unpool(3), lr=1.0),
]

SMALL = normal(1, 2, 3, 4)

RESAMPLINGS = [
    Case("ChannelShuffle", lambda nn: nn.ChannelShuffle(2), normal(2, 4, 3, 2), lr=1.0),
    Case("Flatten", lambda nn: nn.Flatten(), normal(2, 3, 4), lr=1.0),
    Case("Fold", lambda nn: nn.Fold((4, 5), (2, 3), padding=1, stride=2), normal(2, 12, 9), lr=1.0),
    Case("PixelShuffle", lambda nn: nn.PixelShuffle(2), normal(2, 8, 2, 3), lr=1.0),
    Case("PixelUnshuffle", lambda nn: nn.PixelUnshuffle(2), normal(2, 2, 4, 6), lr=1.0),
    Case("Unflatten", lambda nn: nn.Unflatten(1, (2, 3)), normal(4, 6), lr=1.0),
    Case("Unfold", lambda nn: nn.Unfold((2, 3), padding=1, stride=2), normal(2, 2, 4, 5), lr=1.0),
    Case(
        "Upsample linear",
        lambda nn: nn.Upsample(scale_factor=1.5, mode="linear", align_corners=True),
        normal(2, 2, 5),
        lr=1.0,
    ),
    Case("Upsample nearest", lambda nn: nn.Upsample(scale_factor=2), SMALL, lr=1.0),
    Case("Upsample bilinear", lambda nn: nn.Upsample((5, 6), mode="bilinear"), SMALL, lr=1.0),
    Case(
        "Upsample bicubic",
        lambda nn: nn.Upsample(scale_factor=2, mode="bicubic", align_corners=False),
        SMALL,
        lr=1.0,
    ),
    Case(
        "Upsample trilinear",
        lambda nn: nn.Upsample(scale_factor=(2, 1, 1.5), mode="trilinear"),
        normal(1, 1, 2, 3, 4),
        lr=1.0,
    ),
    Case("UpsamplingBilinear2d", lambda nn: nn.UpsamplingBilinear2d((5, 6)), SMALL, lr=1.0),
    Case("UpsamplingNearest2d", lambda nn: nn.UpsamplingNearest2d(scale_factor=2), SMALL, lr=1.0),
]

DISTANCES = [
    Case("CosineSimilarity", lambda nn: nn.CosineSimilarity(1), normal(4, 3), normal(4, 3)),
    Case(
        "PairwiseDistance",
        lambda nn: nn.PairwiseDistance(3, keepdim=True),
        normal(4, 3),
        normal(4, 3),
    ),
]


def _of_containers(nn: Any) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 3)])
            self.named = nn.ModuleDict({"squash": nn.Tanh(), "scale": nn.PReLU()})

        def forward(self, x: Any) -> Any:
            return self.named["scale"](self.layers[1](self.named["squash"](self.layers[0](x))))

    return Net()


def _of_parameters(nn: Any) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            like = nn.Linear(3, 3)
            self.listed = nn.ParameterList([nn.Parameter(like.weight.detach().clone())])
            self.named = nn.ParameterDict({"shift": nn.Parameter(like.bias.detach().clone())})

        def forward(self, x: Any) -> Any:
            return x @ self.listed[0] + self.named["shift"]

    return Net()


CONTAINERS = [
    Case("Identity", lambda nn: nn.Identity(), normal(3, 4), lr=1.0),
    Case("ModuleDict", _of_containers, normal(4, 3)),
    Case("ModuleList", _of_containers, normal(5, 3)),
    Case("ParameterDict", _of_parameters, normal(4, 3)),
    Case("ParameterList", _of_parameters, normal(5, 3)),
    Case(
        "Sequential",
        lambda nn: nn.Sequential(
            nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2), nn.LogSoftmax(1)
        ),
        normal(6, 3),
    ),
    Case(
        "Sequential of images",
        lambda nn: nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1),
            nn.GroupNorm(3, 3),
            nn.GELU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(12, 2),
        ),
        normal(3, 1, 4, 4),
        lr=0.02,
    ),
    Case("Linear weight_norm", lambda nn: nn.utils.weight_norm(nn.Linear(4, 3)), normal(5, 4)),
    Case(
        "Linear parametrizations.weight_norm",
        lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
        normal(5, 4),
    ),
    Case(
        "Linear parametrizations.spectral_norm",
        lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)),
        normal(5, 4),
        buffers=True,
    ),
    Case(
        "Linear spectral_norm",
        lambda nn: nn.utils.spectral_norm(nn.Linear(4, 3)),
        normal(5, 4),
        buffers=True,
    ),
]

SIMPLE = [
    *ACTIVATIONS,
    *PADDINGS,
    *POOLINGS,
    *RESAMPLINGS,
    *DISTANCES,
    *CONTAINERS,
    # Its random slopes lie between two bounds, which are the same here.
    Case("RReLU of one slope", lambda nn: nn.RReLU(0.25, 0.25), normal(3, 4), lr=1.0),
    Case(
        "LocalResponseNorm",
        lambda nn: nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=1.5),
        normal(2, 5, 3),
    ),
    Case("Softmax2d of one image", lambda nn: nn.Softmax2d(), given([[[0.5, -1.0]], [[2.0, 0.3]]])),
]
