"""A weight in eight bits, or in float16, and the product of floats with it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.ao.nn._weights import check_weight_dtype, quantized_weight
from treadle.nn import functional

# Those of weights.
DTYPES = (_C.qint8, _C.float16)


def weight_for(what: str, weight: Tensor, qconfig: Any) -> Tensor:
    """A weight as a QConfig wants it: quantized to qint8, or in float16. AssertionError where it
    wants another dtype, or there is none."""
    if qconfig is None or qconfig.weight is None:
        raise AssertionError(f"{what}: expected a QConfig with a weight observer, got {qconfig}")
    observer = qconfig.weight()
    check_weight_dtype(what, observer.dtype, DTYPES)
    if observer.dtype == _C.float16:
        return weight.detach().half()
    observer(weight)
    return quantized_weight(weight, observer)


def dynamic_linear(x: Tensor, weight: Tensor, bias: Optional[Tensor], relu: bool = False) -> Tensor:
    """x (*, in) @ weight (out, in).T + bias, in the dtype of x. A quantized weight is multiplied by
    x in seven bits, as in PyTorch, so that no processor's sums overflow; one of float16 by x in
    float32. TypeError for an x of other numbers than floats."""
    if not x.is_floating_point():
        raise TypeError(
            f"a dynamically quantized layer: expected an input of floats, got {x.dtype}"
        )
    if weight.is_quantized:
        result = _C._quantized_linear_dynamic(x.float(), weight, bias, relu, True)
    else:
        result = functional.linear(x.float(), weight.float(), bias)
        result = result.relu() if relu else result
    return result.to(x.dtype)
