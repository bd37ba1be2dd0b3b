"""Cases: linear layers, convolutions, normalisations and tables."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, given, integers, normal, positive

LINEAR = [
    Case("Linear", lambda nn: nn.Linear(5, 4), normal(6, 5)),
    Case("Linear of more dimensions", lambda nn: nn.Linear(3, 4, bias=False), normal(2, 3, 3)),
    Case("Bilinear", lambda nn: nn.Bilinear(3, 4, 2), normal(5, 3), normal(5, 4)),
    Case("LazyLinear", lambda nn: nn.LazyLinear(4), normal(6, 5)),
]

SIGNAL, IMAGE, VOLUME = normal(2, 4, 9), normal(2, 4, 5, 6), normal(1, 2, 4, 3, 4)


def _conv(label: str, *inputs: Any, **words: Any) -> Case:
    """`label` is the class and a word."""
    name = label.split()[0]
    return Case(label, lambda nn: getattr(nn, name)(**words), *inputs, weights=0.3)


CONVOLUTIONS = [
    _conv("Conv1d", SIGNAL, in_channels=4, out_channels=3, kernel_size=3, stride=2, padding=1),
    _conv("Conv1d same", SIGNAL, in_channels=4, out_channels=3, kernel_size=4, padding="same"),
    _conv(
        "Conv1d circular",
        SIGNAL,
        in_channels=4,
        out_channels=4,
        kernel_size=3,
        padding=2,
        dilation=2,
        groups=4,
        padding_mode="circular",
    ),
    _conv("Conv2d", IMAGE, in_channels=4, out_channels=3, kernel_size=3),
    _conv("Conv2d of one", IMAGE, in_channels=4, out_channels=3, kernel_size=1, bias=False),
    _conv(
        "Conv2d of groups",
        IMAGE,
        in_channels=4,
        out_channels=6,
        kernel_size=(2, 3),
        stride=(1, 2),
        padding=(1, 0),
        dilation=(2, 1),
        groups=2,
    ),
    _conv(
        "Conv2d reflect",
        IMAGE,
        in_channels=4,
        out_channels=2,
        kernel_size=3,
        padding=1,
        padding_mode="reflect",
    ),
    _conv(
        "Conv2d replicate",
        IMAGE,
        in_channels=4,
        out_channels=2,
        kernel_size=3,
        padding=(1, 2),
        padding_mode="replicate",
    ),
    _conv("Conv3d", VOLUME, in_channels=2, out_channels=2, kernel_size=(2, 3, 2), padding=1),
    _conv(
        "ConvTranspose1d",
        normal(2, 4, 4),
        in_channels=4,
        out_channels=3,
        kernel_size=3,
        stride=2,
        padding=1,
        output_padding=1,
    ),
    _conv(
        "ConvTranspose2d",
        normal(2, 4, 3, 2),
        in_channels=4,
        out_channels=4,
        kernel_size=(3, 2),
        stride=2,
        groups=2,
        dilation=(1, 2),
    ),
    _conv(
        "ConvTranspose3d",
        normal(1, 2, 2, 3, 2),
        in_channels=2,
        out_channels=2,
        kernel_size=2,
        stride=(1, 2, 1),
        bias=False,
    ),
    _conv("LazyConv1d", SIGNAL, out_channels=3, kernel_size=3),
    _conv("LazyConv2d", IMAGE, out_channels=3, kernel_size=3),
    _conv("LazyConv3d", VOLUME, out_channels=2, kernel_size=2),
    _conv("LazyConvTranspose1d", normal(2, 4, 4), out_channels=3, kernel_size=3),
    _conv("LazyConvTranspose2d", normal(2, 4, 3, 2), out_channels=3, kernel_size=2),
    _conv("LazyConvTranspose3d", normal(1, 2, 2, 3, 2), out_channels=2, kernel_size=2),
]

NORMALISATIONS = [
    Case("BatchNorm1d", lambda nn: nn.BatchNorm1d(3), normal(5, 3)),
    Case("BatchNorm1d of signals", lambda nn: nn.BatchNorm1d(3, momentum=None), normal(3, 3, 4)),
    Case(
        "BatchNorm1d without statistics",
        lambda nn: nn.BatchNorm1d(3, affine=False, track_running_stats=False),
        normal(5, 3),
    ),
    Case("BatchNorm2d", lambda nn: nn.BatchNorm2d(3, eps=1e-3, momentum=0.3), normal(2, 3, 3, 2)),
    Case("BatchNorm3d", lambda nn: nn.BatchNorm3d(2), normal(2, 2, 3, 2, 2)),
    Case("LazyBatchNorm1d", lambda nn: nn.LazyBatchNorm1d(), normal(5, 3)),
    Case("LazyBatchNorm2d", lambda nn: nn.LazyBatchNorm2d(), normal(2, 3, 3, 2)),
    Case("LazyBatchNorm3d", lambda nn: nn.LazyBatchNorm3d(), normal(2, 2, 3, 2, 2)),
    Case("GroupNorm", lambda nn: nn.GroupNorm(2, 4), normal(2, 4, 3)),
    Case("GroupNorm of each", lambda nn: nn.GroupNorm(4, 4, affine=False), normal(2, 4, 3)),
    Case(
        "InstanceNorm1d",
        lambda nn: nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
        normal(2, 3, 5),
    ),
    Case("InstanceNorm2d", lambda nn: nn.InstanceNorm2d(3), normal(2, 3, 3, 2)),
    Case("InstanceNorm3d", lambda nn: nn.InstanceNorm3d(2, affine=True), normal(2, 2, 3, 2, 2)),
    Case("LazyInstanceNorm1d", lambda nn: nn.LazyInstanceNorm1d(), normal(2, 3, 5)),
    Case(
        "LazyInstanceNorm2d",
        lambda nn: nn.LazyInstanceNorm2d(affine=False),
        normal(2, 3, 3, 2),
    ),
    Case(
        "LazyInstanceNorm3d",
        lambda nn: nn.LazyInstanceNorm3d(track_running_stats=False),
        normal(2, 2, 3, 2, 2),
    ),
    Case(
        "CrossMapLRN2d",
        lambda nn: nn.CrossMapLRN2d(3, alpha=0.5, beta=0.6, k=2),
        normal(2, 5, 2, 3),
        lr=1.0,
    ),
    Case(
        "CrossMapLRN2d of four",
        lambda nn: nn.CrossMapLRN2d(4, alpha=0.8),
        normal(2, 7, 1, 2),
        lr=1.0,
    ),
    Case(
        "CrossMapLRN2d wider than the channels",
        lambda nn: nn.CrossMapLRN2d(9, alpha=3.0),
        normal(1, 3, 2, 2),
        lr=1.0,
    ),
    Case("LayerNorm", lambda nn: nn.LayerNorm(4), normal(3, 4)),
    Case("LayerNorm of two", lambda nn: nn.LayerNorm((3, 4), bias=False), normal(2, 3, 4)),
    Case("RMSNorm", lambda nn: nn.RMSNorm(4), normal(3, 4)),
    Case("RMSNorm of two", lambda nn: nn.RMSNorm((3, 4), eps=1e-3), normal(2, 3, 4)),
]

# Bags of 3, none, 2 and 3 of eight indices.
BAGS = given(np.array([0, 3, 3, 5]))

TABLES = [
    Case("Embedding", lambda nn: nn.Embedding(6, 3), integers(6, 2, 4)),
    Case("Embedding padded", lambda nn: nn.Embedding(6, 3, padding_idx=2), integers(6, 2, 5)),
    Case("Embedding max_norm", lambda nn: nn.Embedding(6, 3, max_norm=0.5), integers(6, 2, 4)),
    Case(
        "Embedding scale_grad_by_freq",
        lambda nn: nn.Embedding(4, 3, scale_grad_by_freq=True),
        integers(4, 2, 5),
    ),
    Case("EmbeddingBag", lambda nn: nn.EmbeddingBag(6, 3), integers(6, 3, 4)),
    Case("EmbeddingBag sum", lambda nn: nn.EmbeddingBag(6, 3, mode="sum"), integers(6, 8), BAGS),
    Case("EmbeddingBag max", lambda nn: nn.EmbeddingBag(6, 3, mode="max"), integers(6, 8), BAGS),
    Case(
        "EmbeddingBag weighted",
        lambda nn: nn.EmbeddingBag(6, 3, mode="sum", padding_idx=1),
        integers(6, 3, 4),
        positive(3, 4),
        call=lambda module, nn, x, weights: module(x, per_sample_weights=weights),
    ),
]

WEIGHTED = [*LINEAR, *CONVOLUTIONS, *NORMALISATIONS, *TABLES]
