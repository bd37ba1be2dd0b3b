"""The weight and the bias of a layer on quantized tensors, from a prepared float layer."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn._weights import check_weight_dtype, float_bias, quantized_weight
from treadle.ao.nn.intrinsic.qat._fused import _WithBn


def quantized_parameters(
    what: str, mod: Any, use_precomputed_fake_quant: bool
) -> Tuple[Any, Tensor, Optional[Tensor]]:
    """The layer that has the settings, its quantized weight, its bias in float32 or None.

    A normalisation is folded into both. The weight is observed anew, unless
    `use_precomputed_fake_quant` asks for the scale from training. AssertionError for a QConfig with
    weights other than qint8.
    """
    layer = mod[0] if isinstance(mod, nn.Sequential) else mod
    trained = getattr(layer, "weight_fake_quant", None)
    observer = mod.qconfig.weight() if trained is None else trained
    check_weight_dtype(what, observer.dtype, (_C.qint8,))
    fused = layer.fused() if isinstance(layer, _WithBn) else layer
    if trained is None or not use_precomputed_fake_quant:
        observer(fused.weight)
    return layer, quantized_weight(fused.weight, observer), float_bias(fused)
