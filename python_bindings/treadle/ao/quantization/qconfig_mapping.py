"""Which part of a model gets which QConfig, for quantization of graphs.

Example:

    mapping = get_default_qconfig_mapping().set_module_name("head", None)     # the head stays float
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Dict, Union

from treadle import _names, nn
from treadle.ao.quantization.fake_quantize import (
    FixedQParamsFakeQuantize,
    default_weight_fake_quant,
)
from treadle.ao.quantization.observer import (
    default_placeholder_observer,
    default_weight_observer,
)
from treadle.ao.quantization.qconfig import (
    QConfig,
    QConfigAny,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from treadle.ao.quantization.quantization_mappings import FIXED_RANGES
from treadle.nn import functional

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]


class QConfigMapping:
    """QConfigs for all of a model, for classes and functions, for names; the later of these count
    more. Each method gives the mapping back."""

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Union[Callable, str], QConfigAny] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, QConfigAny] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """For all that nothing else is said of."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(
        self, object_type: Union[Callable, str], qconfig: QConfigAny
    ) -> QConfigMapping:
        """For a class of modules, a function, or the name of a method."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """For modules whose names match; the first expression that matches counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """For the module of that name, and those in it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig: QConfigAny
    ) -> QConfigMapping:
        """For the call of that number of a class or function, in the module of that name."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for style, value in vars(self).items():
            lines.append(f" {style}")
            if isinstance(value, OrderedDict) and value:
                lines += [f"  {key}: {qconfig}" for key, qconfig in value.items()]
            else:
                lines.append(f"  {value}")
        return "\n".join((*lines, ")"))

    def to_dict(self) -> Dict[str, Any]:
        """The mapping as a dictionary of lists of tuples; "" is for all."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [
                (*key, qconfig)
                for key, qconfig in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: Dict[str, Any]) -> QConfigMapping:
        """The mapping of a dictionary as to_dict() returns it; keys may be missing. ValueError for
        another key."""
        made = cls()
        keys = list(made.to_dict())
        for style, entries in qconfig_dict.items():
            if style not in keys:
                raise ValueError(f"QConfigMapping: expected keys in {keys}, got {style!r}")
            if style == "":
                made.set_global(entries)
                continue
            for entry in entries:
                getattr(made, f"set_{style}")(*entry)
        return made


def _default_mapping(qconfig: QConfig, backend: str, is_qat: bool) -> QConfigMapping:
    default_weight = default_weight_fake_quant if is_qat else default_weight_observer
    transposed = qconfig
    if backend in ("fbgemm", "x86"):
        transposed = QConfig(qconfig.activation, default_weight)
    mapping = QConfigMapping().set_global(qconfig)
    mapping.set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d):
        mapping.set_object_type(kind, transposed)
    for function in (
        functional.conv_transpose1d,
        functional.conv_transpose2d,
        functional.conv_transpose3d,
    ):
        mapping.set_object_type(function, transposed)
    with_float_weight = QConfig(qconfig.activation, default_placeholder_observer)
    mapping.set_object_type(functional.layer_norm, with_float_weight)
    mapping.set_object_type(nn.LayerNorm, with_float_weight)
    mapping.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kind, observer in FIXED_RANGES.items():
        fixed = FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer
        mapping.set_object_type(kind, QConfig(fixed, default_weight))
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """get_default_qconfig() for all of a model, and what has a known range with that range."""
    return _default_mapping(get_default_qconfig(backend, version), backend, False)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """get_default_qat_qconfig() for all of a model, and what has a known range with that range."""
    return _default_mapping(get_default_qat_qconfig(backend, version), backend, True)


__getattr__ = _names.attributes_of(__name__)
