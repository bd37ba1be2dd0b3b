"""Quantization of a model by its modules: prepare() puts observers in, convert() puts quantized
layers in place of float ones.

Example:

    model.qconfig = get_default_qconfig()
    prepared = prepare(model)
    prepared(samples)
    quantized = convert(prepared)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any, Callable, Dict, Optional, Sequence, Set

from treadle import _C, _names, nn
from treadle._C import Tensor
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.intrinsic import _FusedModule
from treadle.ao.quantization.observer import _is_activation_post_process
from treadle.ao.quantization.qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
)
from treadle.ao.quantization.quantization_mappings import (
    _get_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)
from treadle.ao.quantization.stubs import DeQuantStub, QuantWrapper
from treadle.ao.quantization.utils import (
    has_no_children_ignoring_parametrizations,
    pass_hooks_on,
    type_before_parametrizations,
)

__all__ = [
    "add_quant_dequant",
    "convert",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

_Config = Optional[Dict[Any, Any]]


def get_default_custom_config_dict() -> Dict[str, Any]:
    """Classes of programs that prepare() and convert() exchange: none."""
    return {
        "float_to_observed_custom_module_class": {},
        "observed_to_quantized_custom_module_class": {},
    }


def propagate_qconfig_(
    module: nn.Module, qconfig_dict: _Config = None, prepare_custom_config_dict: _Config = None
) -> None:
    """Give each module in `module` the attribute `qconfig`: its own, else that of its name in
    `qconfig_dict`, else that of its class, else that of the module around it. Modules that are
    named in "non_traceable_module_name" or are of "non_traceable_module_class" get none. TypeError
    where that is neither a QConfig nor None."""
    custom = prepare_custom_config_dict or {}
    _propagate(module, qconfig_dict or {}, None, "", custom)


def _propagate(module: Any, given: Dict[Any, Any], outer: Any, name: str, custom: Any) -> None:
    qconfig = given.get(type_before_parametrizations(module), outer)
    qconfig = getattr(module, "qconfig", given.get(name, qconfig))
    _assert_valid_qconfig(qconfig, module)
    module.qconfig = qconfig = _add_module_to_qconfig_obs_ctr(qconfig, module)
    for own, child in module.named_children():
        path = f"{name}.{own}" if name else own
        left_out = path in custom.get("non_traceable_module_name", [])
        if not left_out and type(child) not in custom.get("non_traceable_module_class", []):
            _propagate(child, given, qconfig, path, custom)


def _observer_forward_hook(self: Any, input: Any, output: Tensor) -> Tensor:
    """Observes what a module gives back."""
    del input
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Tensor:
    """Observes what a module is given."""
    return self.activation_post_process(input[0])


def _device_of(what: str, module: nn.Module) -> Any:
    devices = {t.device for t in (*module.parameters(), *module.buffers())}
    devices = {device for device in devices if device.type != "meta"}
    if len(devices) > 1:
        names = ", ".join(sorted(map(str, devices)))
        raise AssertionError(f"{what}: expected a module on one device, got {names}")
    return next(iter(devices), None)


def _has_qconfig(module: nn.Module) -> bool:
    return getattr(module, "qconfig", None) is not None


class _Observers:
    """Puts observers into a model: after layers whose classes are in `kinds`, and in place of the
    Identity of FloatFunctional."""

    def __init__(self, kinds: Any, non_leaves: Any, custom: Dict[Any, Any], device: Any) -> None:
        self._kinds, self._non_leaves = kinds, non_leaves
        self._custom, self._device = custom, device
        self._seen: Set[nn.Module] = set()

    def _made(self, module: Any, factory: Any = None) -> nn.Module:
        factory = factory or module.qconfig.activation
        if factory is None:
            raise TypeError(
                f"prepare: expected a factory of observers as activation in the QConfig of "
                f"{type(module).__name__}, got None"
            )
        observer = factory()
        return observer if self._device is None else observer.to(self._device)

    def _attach(self, module: Any, factory: Any = None) -> None:
        if not _has_qconfig(module) or isinstance(module, DeQuantStub) or module in self._seen:
            return
        self._seen.add(module)  # a module may stand in several places
        module.add_module("activation_post_process", self._made(module, factory))
        if _activation_is_memoryless(module.qconfig):
            module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
        else:
            module.register_forward_hook(_observer_forward_hook, prepend=True)

    def add(self, module: Any) -> None:
        """Put observers into a module, and into those in it."""
        for name, child in list(module.named_children()):
            self._add_to_child(module, name, child)
        kind = type_before_parametrizations(module)
        is_leaf = has_no_children_ignoring_parametrizations(module)
        if kind is not nn.Sequential and kind in self._kinds:
            if is_leaf or hasattr(module, "weight_fake_quant"):
                self._attach(module)

    def _add_to_child(self, module: Any, name: str, child: Any) -> None:
        kind = type_before_parametrizations(child)
        special = _get_special_act_post_process(child)
        if kind is nn.Dropout:
            return
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if _has_qconfig(child):
                child.activation_post_process = self._made(child)
        elif isinstance(child, _FusedModule) or kind in self._non_leaves:
            self._attach(child)
        elif special is not None:
            self._attach(child, special)
        elif _has_qconfig(child) and kind in self._custom:
            observed = self._custom[kind].from_float(child)
            setattr(module, name, observed)
            self._attach(observed)
        else:
            self.add(child)


def add_quant_dequant(module: Any) -> Any:
    """Wrap each layer that has a QConfig in a QuantWrapper. Gives back the module, or the wrapper
    of a module that is one layer."""
    if has_no_children_ignoring_parametrizations(module) and _has_qconfig(module):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(
    model: Any,
    inplace: bool = False,
    allow_list: Optional[Set[type]] = None,
    observer_non_leaf_module_list: Optional[Sequence[type]] = None,
    prepare_custom_config_dict: _Config = None,
) -> Any:
    """A copy of a model, or the model itself, with an observer after each layer that has a QConfig:
    the attribute `qconfig` of the layer, or of a module around it.

    `allow_list` has the classes of layers that are observed, by default all that can be quantized;
    `observer_non_leaf_module_list` further classes of modules with layers inside. A warning where
    there is no QConfig. AssertionError for a model on several devices, TypeError for a `qconfig`
    that is no QConfig.
    """
    custom = prepare_custom_config_dict or get_default_custom_config_dict()
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(_has_qconfig(module) for module in model.modules()):
        warnings.warn(
            "prepare: no module has a QConfig; set the attribute qconfig of the model or of a "
            "module in it",
            stacklevel=2,
        )
    _Observers(
        get_default_qconfig_propagation_list() if allow_list is None else allow_list,
        observer_non_leaf_module_list or (),
        custom.get("float_to_observed_custom_module_class", {}),
        _device_of("prepare", model),
    ).add(model)
    return model


def _remove_qconfig(module: Any) -> None:
    """Take QConfigs, observers and their hooks out of a model."""
    for part in module.modules():
        if "qconfig" in vars(part):
            del part.qconfig
        if _is_activation_post_process(getattr(part, "activation_post_process", None)):
            del part.activation_post_process
        for hooks in (part._forward_pre_hooks, part._forward_hooks):
            for key, hook in list(hooks.items()):
                if hook in (_observer_forward_hook, _observer_forward_pre_hook):
                    del hooks[key]


def quantize(
    model: Any,
    run_fn: Callable[..., Any],
    run_args: Sequence[Any],
    mapping: _Config = None,
    inplace: bool = False,
) -> Any:
    """prepare() the model, call run_fn(model, *run_args), and convert() it; in evaluation mode."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


_DYNAMIC_KINDS = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
# For each dtype of weights: the QConfig, and the classes that get it where none are named.
_DYNAMIC: Dict[Any, Any] = {
    _C.qint8: (default_dynamic_qconfig, _DYNAMIC_KINDS),
    _C.float16: (float16_dynamic_qconfig, _DYNAMIC_KINDS),
    _C.quint8: (float_qparams_weight_only_qconfig, (nn.EmbeddingBag, nn.Embedding)),
}


def quantize_dynamic(
    model: Any,
    qconfig_spec: Any = None,
    dtype: Any = _C.qint8,
    mapping: _Config = None,
    inplace: bool = False,
) -> Any:
    """A copy of a model, or the model itself, with layers whose weights are quantized; their
    results stay floats. It is put into evaluation mode. A model that is itself one layer stays as
    it is.

    Without `qconfig_spec`, `dtype` says which layers: linear and recurrent ones for qint8 and
    float16, tables of embeddings for quint8. `qconfig_spec` is a set of classes and names of
    modules, or a dictionary with a QConfig for each. ValueError for another dtype.
    """
    if not isinstance(qconfig_spec, dict):
        if dtype not in _DYNAMIC:
            names = ", ".join(str(kind) for kind in _DYNAMIC)
            raise ValueError(f"quantize_dynamic: expected dtype in {names}, got {dtype}")
        qconfig, kinds = _DYNAMIC[dtype]
        qconfig_spec = dict.fromkeys(kinds if qconfig_spec is None else qconfig_spec, qconfig)
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping, inplace=True)


def prepare_qat(model: Any, mapping: _Config = None, inplace: bool = False) -> Any:
    """A copy of a model, or the model itself, whose layers with a QConfig round their weights and
    results, for training. AssertionError for a model in evaluation mode."""
    if not model.training:
        raise AssertionError("prepare_qat: expected a model in training mode; call train() first")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=tuple(mapping.values()))


def quantize_qat(
    model: Any, run_fn: Callable[..., Any], run_args: Sequence[Any], inplace: bool = False
) -> Any:
    """prepare_qat() the model, call run_fn(model, *run_args), which trains it, and convert() it."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def convert(
    module: Any,
    mapping: _Config = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: _Config = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """A copy of a prepared model, or the model itself, with quantized layers for float ones.

    `mapping` says which class takes the place of which. `remove_qconfig` takes QConfigs and
    observers out; `use_precomputed_fake_quant` takes the scales of weights from training.
    NotImplementedError with is_reference=True.
    """
    if is_reference:
        raise NotImplementedError("convert: expected is_reference=False, got True")
    custom = convert_custom_config_dict or get_default_custom_config_dict()
    module = module if inplace else copy.deepcopy(module)
    _convert(
        module,
        get_default_static_quant_module_mappings() if mapping is None else mapping,
        custom.get("observed_to_quantized_custom_module_class", {}),
        use_precomputed_fake_quant,
        {},
    )
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(
    module: Any, mapping: Any, custom: Any, use_precomputed_fake_quant: bool, made: Dict[Any, Any]
) -> None:
    """Exchange the modules in a module. `made` has what took the place of which before, since a
    module may stand in several places."""
    for name, child in module._modules.items():
        if child is None:
            continue
        if child not in made:
            # A fused layer is exchanged as a whole.
            is_whole = isinstance(child, _FusedModule) or hasattr(child, "weight_fake_quant")
            if not is_whole and type_before_parametrizations(child) not in custom:
                _convert(child, mapping, custom, use_precomputed_fake_quant, made)
            made[child] = swap_module(child, mapping, custom, use_precomputed_fake_quant)
        module._modules[name] = made[child]


def swap_module(
    mod: Any,
    mapping: Dict[Any, Any],
    custom_module_class_mapping: _Config = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """The module that replaces one with a QConfig, by its class in `mapping`; the module itself if
    there is none. Hooks are kept."""
    kind = type_before_parametrizations(mod)
    custom: Dict[Any, Any] = custom_module_class_mapping or {}
    if not _has_qconfig(mod) or not (kind in custom or kind in mapping):
        return mod
    device = _device_of("swap_module", mod)
    if kind in custom:
        made = custom[kind].from_observed(mod)
    else:
        make = mapping[kind].from_float
        settings = {"use_precomputed_fake_quant": use_precomputed_fake_quant}
        takes = inspect.signature(make).parameters
        made = make(mod, **{k: v for k, v in settings.items() if k in takes})
    pass_hooks_on(mod, mod, made, but=(_observer_forward_pre_hook, _observer_forward_hook))
    return made if device is None else made.to(device)


__getattr__ = _names.attributes_of(__name__)
