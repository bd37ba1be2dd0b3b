"""What a layer gets when it is prepared: a factory of observers for its results, and one for its
weights.

Example:

    model.qconfig = QConfig(
        activation=MinMaxObserver.with_args(quant_max=127, quant_min=0),
        weight=default_per_channel_weight_observer,
    )
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Dict, NamedTuple, Optional, Union

from treadle import _C, _names, nn
from treadle.ao.quantization import fake_quantize as _fake
from treadle.ao.quantization._factories import same_factory
from treadle.ao.quantization.fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_fake_quant,
    default_weight_fake_quant,
)
from treadle.ao.quantization.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)


class _Pair(NamedTuple):
    activation: Any
    weight: Any


def _check_factory(name: str, *factories: Any) -> None:
    for made in factories:
        if isinstance(made, nn.Module):
            raise ValueError(
                f"{name}: expected classes, or what with_args() of them gives, got an instance of "
                f"{type(made).__name__}"
            )


class QConfig(_Pair):
    """A factory of observers for results and one for weights: classes, or what with_args() of them
    gives. ValueError for an observer itself."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        _check_factory("QConfig", activation, weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(_Pair):
    """The older form of QConfig for dynamic quantization; FutureWarning."""

    __slots__ = ()

    def __new__(cls, activation: Any = nn.Identity, weight: Any = nn.Identity) -> QConfigDynamic:
        warnings.warn("QConfigDynamic: use QConfig", FutureWarning, stacklevel=2)
        _check_factory("QConfigDynamic", weight)
        return super().__new__(cls, activation, weight)


QConfigAny = Optional[QConfig]

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=_C.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=_C.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=_C.float16),
    PlaceholderObserver.with_args(dtype=_C.float16),
)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, nn.Identity)
default_qat_qconfig_v2 = QConfig(
    _fake.default_fused_act_fake_quant, _fake.default_fused_wt_fake_quant
)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=_C.float32), _fake.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=_C.float32), _fake.default_embedding_fake_quant_4bit
)

_signed_histogram = HistogramObserver.with_args(dtype=_C.qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_signed_histogram, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _signed_histogram, per_channel_weight_observer_range_neg_127_to_127
)
_signed_fake = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=_C.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_fake, _fake.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_fake, _fake.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

# For each backend: whether activations have seven bits only, and whether weights have a scale for
# each channel.
_BACKENDS: Dict[str, Any] = {
    "fbgemm": (True, True),
    "x86": (True, True),
    "qnnpack": (False, False),
    "onednn": (False, True),
}


def _of_backend(what: str, backend: str, version: Any, versions: Any) -> Any:
    if backend not in _BACKENDS:
        raise AssertionError(f"{what}: expected backend in {sorted(_BACKENDS)}, got {backend!r}")
    if version not in versions:
        raise AssertionError(f"{what}: expected version in {list(versions)}, got {version!r}")
    return _BACKENDS[backend]


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The QConfig for quantization after training, on 'x86', 'fbgemm', 'qnnpack' or 'onednn':
    histograms of activations; scales of weights for each channel, on 'qnnpack' for a tensor.
    AssertionError for another name."""
    reduced, per_channel = _of_backend("get_default_qconfig", backend, version, (0,))
    weight = default_per_channel_weight_observer if per_channel else default_weight_observer
    return QConfig(HistogramObserver.with_args(reduce_range=reduced), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The QConfig for training with quantization in view, on the same backends. With version 1 one
    function observes and rounds; with 0 two do. AssertionError for another name or version."""
    reduced, per_channel = _of_backend("get_default_qat_qconfig", backend, version, (0, 1))
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    if version:
        by_channel = _fake.default_fused_per_channel_wt_fake_quant
        by_tensor = _fake.default_fused_wt_fake_quant
    else:
        by_channel = _fake.default_per_channel_weight_fake_quant
        by_tensor = default_weight_fake_quant
    activation = kind.with_args(
        observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, reduce_range=reduced
    )
    return QConfig(activation, by_channel if per_channel else by_tensor)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> Dict[str, Any]:
    """get_default_qconfig_mapping() as a dictionary; FutureWarning."""
    warnings.warn(
        "get_default_qconfig_dict: use get_default_qconfig_mapping", FutureWarning, stacklevel=2
    )
    mapping = _names.package().ao.quantization.get_default_qconfig_mapping(backend, version)
    return mapping.to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> Dict[str, Any]:
    """get_default_qat_qconfig_mapping() as a dictionary; FutureWarning."""
    warnings.warn(
        "get_default_qat_qconfig_dict: use get_default_qat_qconfig_mapping",
        FutureWarning,
        stacklevel=2,
    )
    mapping = _names.package().ao.quantization.get_default_qat_qconfig_mapping(backend, version)
    return mapping.to_dict()


_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_BY_CHANNEL = (PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver)


def _assert_valid_qconfig(qconfig: QConfigAny, mod: nn.Module) -> None:
    """TypeError for what is no QConfig. AssertionError where the weight of a transposed convolution
    would have a scale for each channel."""
    if qconfig is not None and not isinstance(qconfig, _Pair):
        raise TypeError(
            f"{type(mod).__name__}: expected qconfig to be a QConfig or None, got {qconfig!r}"
        )
    if isinstance(mod, _TRANSPOSED) and qconfig is not None and qconfig.weight is not None:
        if isinstance(qconfig.weight(), _BY_CHANNEL):
            raise AssertionError(
                f"{type(mod).__name__}: expected a weight observer per tensor, got "
                f"{type(qconfig.weight()).__name__}"
            )


def _on_device_of(module: nn.Module, factory: Any) -> Any:
    """A factory that makes observers on the device of a module, where they take one."""

    def factory_kwargs() -> Optional[Dict[str, Any]]:
        for tensor in (*module.parameters(), *module.buffers()):
            return {"device": tensor.device}
        return None

    try:
        factory.with_args(factory_kwargs=None)()
    except (AttributeError, TypeError):  # not an observer, or not one with buffers
        return factory
    return factory.with_callable_args(factory_kwargs=factory_kwargs)


def _add_module_to_qconfig_obs_ctr(qconfig: QConfigAny, module: Optional[nn.Module]) -> Any:
    """A QConfig that makes observers on the device of a module."""
    if module is None or qconfig is None or not isinstance(qconfig, QConfig):
        return qconfig
    devices = {t.device.type for t in (*module.parameters(), *module.buffers())}
    if devices <= {"cpu"}:
        return qconfig
    return QConfig(*(_on_device_of(module, factory) for factory in qconfig))


def qconfig_equals(q1: Union[QConfigAny, QConfigDynamic], q2: Any) -> bool:
    """Whether two QConfigs make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    return same_factory(q1.activation, q2.activation) and same_factory(q1.weight, q2.weight)


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Whether the scale of activations is that of the last tensor alone."""
    made = qconfig.activation()
    observer = getattr(made, "activation_post_process", made)
    return getattr(observer, "averaging_constant", None) == 1


__getattr__ = _names.attributes_of(__name__)
