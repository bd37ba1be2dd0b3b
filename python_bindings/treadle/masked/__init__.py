"""Tensors some of whose elements do not count.

Example:

    treadle.masked.mean(x, 1, mask=x > 0)          # the mean of what is positive, in each row
    m = treadle.masked.masked_tensor(x, x > 0)     # the two together
    m.mean(1)
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.masked._operations import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,  # noqa: A004
    var,
)
from treadle.masked.maskedtensor.core import (
    MaskedTensor,
    as_masked_tensor,
    is_masked_tensor,
    masked_tensor,
)

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
