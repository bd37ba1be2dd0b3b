"""Where PyTorch keeps its classes: a checkpoint with a whole layer in it names the layer's class by
module and name, and the modules here are laid out otherwise.

`torch.nn.modules.activation.MultiheadAttention` in a file is `treadle.nn.MultiheadAttention`, in
whatever module of this package it is written.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import sys
from typing import Any, Dict, Optional

# The name of the package in a checkpoint, so that PyTorch reads it too.
PACKAGE_IN_FILES = "torch"
_PACKAGE = __name__.partition(".")[0]

# By the module here that makes them public: PyTorch's module of each class.
_CLASSES = {
    "nn": {
        "nn.modules.activation": (
            "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid "
            "LogSoftmax Mish MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax "
            "Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
        ),
        "nn.modules.adaptive": "AdaptiveLogSoftmaxWithLoss",
        "nn.modules.batchnorm": (
            "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d "
            "SyncBatchNorm"
        ),
        "nn.modules.channelshuffle": "ChannelShuffle",
        "nn.modules.container": (
            "Container ModuleDict ModuleList ParameterDict ParameterList Sequential"
        ),
        "nn.modules.conv": (
            "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d "
            "LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"
        ),
        "nn.modules.distance": "CosineSimilarity PairwiseDistance",
        "nn.modules.dropout": (
            "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout"
        ),
        "nn.modules.flatten": "Flatten Unflatten",
        "nn.modules.fold": "Fold Unfold",
        "nn.modules.instancenorm": (
            "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
            "LazyInstanceNorm3d"
        ),
        "nn.modules.linear": "Bilinear Identity LazyLinear Linear",
        "nn.modules.loss": (
            "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss "
            "LinearCrossEntropyLoss "
            "GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss "
            "MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss "
            "NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
            "TripletMarginWithDistanceLoss"
        ),
        "nn.modules.module": "Module",
        "nn.modules.normalization": ("CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm"),
        "nn.modules.padding": (
            "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
            "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
            "ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d"
        ),
        "nn.modules.pixelshuffle": "PixelShuffle PixelUnshuffle",
        "nn.modules.pooling": (
            "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d "
            "AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d "
            "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d "
            "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
        ),
        "nn.modules.rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
        "nn.modules.sparse": "Embedding EmbeddingBag",
        "nn.modules.transformer": (
            "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
            "TransformerEncoderLayer"
        ),
        "nn.modules.upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
        "nn.parallel.data_parallel": "DataParallel",
        "nn.parameter": "Buffer Parameter UninitializedBuffer UninitializedParameter",
    },
    "nn.modules.linear": {"nn.modules.linear": "NonDynamicallyQuantizableLinear"},
    "optim": {
        "optim.adadelta": "Adadelta",
        "optim.adagrad": "Adagrad",
        "optim.adam": "Adam",
        "optim.adamax": "Adamax",
        "optim.adamw": "AdamW",
        "optim.asgd": "ASGD",
        "optim.lbfgs": "LBFGS",
        "optim.nadam": "NAdam",
        "optim.optimizer": "Optimizer",
        "optim.radam": "RAdam",
        "optim.rmsprop": "RMSprop",
        "optim.rprop": "Rprop",
        "optim.sgd": "SGD",
        "optim.sparse_adam": "SparseAdam",
    },
    "optim.lr_scheduler": {
        "optim.lr_scheduler": (
            "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR "
            "ExponentialLR LRScheduler LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR "
            "PolynomialLR ReduceLROnPlateau SequentialLR StepLR"
        ),
    },
    "utils.data": {
        "utils.data.dataset": (
            "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset"
        ),
        "utils.data.sampler": (
            "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler "
            "WeightedRandomSampler"
        ),
    },
}

PUBLIC_MODULES = tuple(_CLASSES)

# Classes of PyTorch that are told apart there and are one here.
_SAME_AS = {
    "torch.optim.lr_scheduler._LRScheduler": ("optim.lr_scheduler", "LRScheduler"),
}

_public_of = {
    f"{PACKAGE_IN_FILES}.{path}.{name}": (public, name)
    for public, paths in _CLASSES.items()
    for path, names in paths.items()
    for name in names.split()
} | _SAME_AS
_path_of = {
    (public, name): f"{PACKAGE_IN_FILES}.{path}"
    for public, paths in _CLASSES.items()
    for path, names in paths.items()
    for name in names.split()
}


def class_named(full: str) -> Optional[type]:
    """The class here that PyTorch's `torch.nn.modules.linear.Linear` stands for; None for other
    names."""
    place = _public_of.get(full)
    if place is None:
        return None
    value = getattr(importlib.import_module(f"{_PACKAGE}.{place[0]}"), place[1], None)
    return value if isinstance(value, type) else None


def classes_of(path: str) -> Dict[str, type]:
    """The classes that PyTorch's module of that path has and that are here, by name."""
    names = [full for full in _public_of if full.rpartition(".")[0] == path]
    found = {full.rpartition(".")[2]: class_named(full) for full in names}
    return {name: kind for name, kind in found.items() if kind is not None}


def path_in_files(value: Any, name: str) -> str:
    """The module by which a checkpoint knows a class or function; those of other packages keep
    theirs."""
    module = getattr(value, "__module__", None) or ""
    head, dot, rest = module.partition(".")
    if head != _PACKAGE:
        return module
    for public in _CLASSES:
        if rest.startswith(public) and (public, name) in _path_of:
            return _path_of[public, name]
    if rest.startswith("nn.functional"):
        return f"{PACKAGE_IN_FILES}.nn.functional"
    return PACKAGE_IN_FILES if rest == "_C" else PACKAGE_IN_FILES + dot + rest


def module_here(path: str) -> Optional[Any]:
    """The loaded module that a file calls `path`; None where there is none."""
    head, dot, rest = path.partition(".")
    return sys.modules.get(_PACKAGE + dot + rest if head == PACKAGE_IN_FILES else path)
