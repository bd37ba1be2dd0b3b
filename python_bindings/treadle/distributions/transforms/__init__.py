"""Transforms: maps between values whose change of volume is known.

    t = transforms.AffineTransform(1.0, 2.0)
    y = t(x)
    t.inv(y), t.log_abs_det_jacobian(x, y)

A TransformedDistribution is a distribution seen through transforms.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributions.transforms.elementwise import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from treadle.distributions.transforms.elementwise import (
    _clipped_sigmoid as _clipped_sigmoid,
)
from treadle.distributions.transforms.joined import CatTransform, StackTransform
from treadle.distributions.transforms.transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    identity_transform,
)
from treadle.distributions.transforms.transform import (
    _InverseTransform as _InverseTransform,
)
from treadle.distributions.transforms.vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]
