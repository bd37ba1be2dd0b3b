"""Quantization of models: to layers that compute on numbers of eight bits, after training or with
training in between.

Example:

    smaller = quantize_dynamic(model)     # linear and recurrent layers with weights in eight bits
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, Union

from treadle import _names
from treadle.ao.quantization.fake_quantize import *  # noqa: F403
from treadle.ao.quantization.fake_quantize import FakeQuantizeBase
from treadle.ao.quantization.fuse_modules import fuse_modules, fuse_modules_qat
from treadle.ao.quantization.fuser_method_mappings import *  # noqa: F403
from treadle.ao.quantization.observer import *  # noqa: F403
from treadle.ao.quantization.observer import ObserverBase
from treadle.ao.quantization.qconfig import (
    QConfig,
    QConfigAny,
    QConfigDynamic,
    default_activation_only_qconfig,
    default_debug_qconfig,
    default_dynamic_qat_qconfig,
    default_dynamic_qconfig,
    default_embedding_qat_qconfig,
    default_embedding_qat_qconfig_4bit,
    default_per_channel_qconfig,
    default_per_channel_symmetric_qnnpack_qat_qconfig,
    default_per_channel_symmetric_qnnpack_qconfig,
    default_qat_qconfig,
    default_qat_qconfig_v2,
    default_qconfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    default_symmetric_qnnpack_qat_qconfig,
    default_symmetric_qnnpack_qconfig,
    default_weight_only_qconfig,
    float16_dynamic_qconfig,
    float16_static_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
    get_default_qat_qconfig,
    get_default_qat_qconfig_dict,
    get_default_qconfig,
    get_default_qconfig_dict,
    per_channel_dynamic_qconfig,
    qconfig_equals,
)
from treadle.ao.quantization.qconfig_mapping import *  # noqa: F403
from treadle.ao.quantization.quant_type import QuantType
from treadle.ao.quantization.quantization_mappings import *  # noqa: F403
from treadle.ao.quantization.quantize import *  # noqa: F403
from treadle.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper
from treadle.ao.quantization.weight_only import (  # noqa: F401
    Int4WeightOnlyConfig,
    Int8WeightOnlyConfig,
    quantize_,
)

ObserverOrFakeQuantize = Union[ObserverBase, FakeQuantizeBase]


def default_eval_fn(model: Any, calib_data: Iterable[Any]) -> None:
    """Call a model with the first of each pair of `calib_data`."""
    for data, _target in calib_data:
        model(data)


__getattr__ = _names.attributes_of(__name__)
