"""Which class takes the place of which: for quantized tensors, for quantized weights, for training.

Example:

    get_default_static_quant_module_mappings()[nn.Linear]      # nn.quantized.Linear
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Set

from treadle import _C, _names, nn
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import qat as nnqat
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.intrinsic import qat as nniqat
from treadle.ao.nn.intrinsic import quantized as nniq
from treadle.ao.nn.intrinsic.quantized import dynamic as nniqd
from treadle.ao.nn.quantized import dynamic as nnqd
from treadle.ao.nn.quantized._in_float import OF_KNOWN_RANGE
from treadle.ao.quantization.fake_quantize import FixedQParamsFakeQuantize
from treadle.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from treadle.ao.quantization.stubs import DeQuantStub, QuantStub
from treadle.ao.quantization.utils import get_combined_dict, type_before_parametrizations
from treadle.nn import functional
from treadle.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = [
    "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_static_quant_module_class",
    "no_observer_set",
]


def _by_name(source: Any, target: Any, names: str) -> Dict[type, type]:
    return {getattr(source, name): getattr(target, name) for name in names.split()}


DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: Dict[Any, Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    nnq.FloatFunctional: nnq.QFunctional,
    NonDynamicallyQuantizableLinear: nnq.Linear,
    **OF_KNOWN_RANGE,
    **_by_name(
        nn,
        nnq,
        "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d Dropout ELU Embedding EmbeddingBag GroupNorm "
        "Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU Linear PReLU "
        "ReLU6",
    ),
    **_by_name(nni, nniq, "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU"),
    **_by_name(nniqat, nniq, "ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU"),
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    nniqat.LinearBn1d: nnq.Linear,
    **_by_name(nnqat, nnq, "Linear Conv1d Conv2d Conv3d"),
}

DEFAULT_QAT_MODULE_MAPPINGS: Dict[Any, Any] = {
    NonDynamicallyQuantizableLinear: nnqat.Linear,
    **_by_name(nn, nnqat, "Conv1d Conv2d Conv3d Linear"),
    **_by_name(
        nni,
        nniqat,
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d "
        "ConvReLU3d LinearBn1d LinearReLU",
    ),
}

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: Dict[Any, Any] = {
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    nnqat.Linear: nnqd.Linear,
    nni.LinearReLU: nniqd.LinearReLU,
    **_by_name(nn, nnqd, "GRU GRUCell LSTM LSTMCell Linear RNNCell"),
    **_by_name(nn, nnq, "Embedding EmbeddingBag"),
}

# Modules, functions and methods whose results have a known range, by the observer of that range.
FIXED_RANGES: Dict[Any, Any] = {
    **dict.fromkeys(
        (
            nn.Hardsigmoid,
            functional.hardsigmoid,
            "hardsigmoid",
            "hardsigmoid_",
            nn.Sigmoid,
            functional.sigmoid,
            _C.sigmoid,
            "sigmoid",
            "sigmoid_",
            nn.Softmax,
        ),
        default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys(
        (nn.Tanh, functional.tanh, _C.tanh, "tanh", "tanh_"),
        default_fixed_qparams_range_neg1to1_observer,
    ),
}

# Fake quantisation of the results of modules with a known range, in training.
DEFAULT_MODULE_TO_ACT_POST_PROCESS: Dict[Any, Any] = {
    kind: FixedQParamsFakeQuantize.with_args(observer=observer)
    for kind, observer in FIXED_RANGES.items()
    if isinstance(kind, type)
}


def no_observer_set() -> Set[Any]:
    """The classes whose results are not observed, though they are quantized: none."""
    return set()


def get_default_static_quant_module_mappings() -> Dict[Any, Any]:
    """A copy of the classes for quantized tensors, by the float class."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> Dict[Any, Any]:
    """The same, with tables of embeddings that were trained with rounding."""
    trained = _by_name(nnqat, nnq, "Embedding EmbeddingBag")
    return {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, **trained}


def get_default_qat_module_mappings() -> Dict[Any, Any]:
    """A copy of the classes for training, by the float class."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> Dict[Any, Any]:
    """The same, with tables of embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, **_by_name(nn, nnqat, "Embedding EmbeddingBag")}


def get_default_dynamic_quant_module_mappings() -> Dict[Any, Any]:
    """A copy of the classes with quantized weights, by the float class."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def _looked_up(what: str, kind: Any, mapping: Dict[Any, Any], more: Optional[Dict]) -> Any:
    found = get_combined_dict(mapping, more or {}).get(kind)
    if found is None:
        raise AssertionError(
            f"{what}: expected a class that has a quantized one, got {kind.__name__}"
        )
    return found


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Optional[Dict[Any, Any]] = None
) -> Any:
    """The class for quantized tensors of a float class; AssertionError where there is none."""
    return _looked_up(
        "get_static_quant_module_class",
        float_module_class,
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        additional_static_quant_mapping,
    )


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Optional[Dict[Any, Any]] = None
) -> Any:
    """The class with quantized weights of a float class; AssertionError where there is none."""
    return _looked_up(
        "get_dynamic_quant_module_class",
        float_module_class,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        additional_dynamic_quant_mapping,
    )


def get_default_qconfig_propagation_list() -> Set[Any]:
    """The classes whose results prepare() observes."""
    found = {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        nn.Sequential,
    }
    return found - set(OF_KNOWN_RANGE)


def get_default_compare_output_module_list() -> Set[Any]:
    """The classes whose results are worth comparing: those from before and those after."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    after = {kind for mapping in mappings for kind in mapping.values()}
    return get_default_qconfig_propagation_list() | after


def _get_special_act_post_process(module: nn.Module) -> Optional[Callable[..., Any]]:
    """Fake quantisation of the results of a module with a known range; None for other modules."""
    if not module.training:
        return None
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


__getattr__ = _names.attributes_of(__name__)
