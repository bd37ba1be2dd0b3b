"""The layers of `nn` as plain functions: `F.relu(x)`, `F.conv2d(x, weight)`. Each file holds one
family."""

from .activation import (
    gelu,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    relu,
    relu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    tanh,
)
from .affine import bilinear, embedding, linear
from .convolution import conv2d
from .encoding import one_hot
from .loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from .normalization import batch_norm, layer_norm, normalize
from .padding import pad
from .pooling import avg_pool2d, max_pool2d
from .regularization import dropout

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "log_softmax",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "relu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "tanh",
]
