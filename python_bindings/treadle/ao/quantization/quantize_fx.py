"""Quantization of a model by its graph: no stubs, no names of layers.

Example:

    prepared = prepare_fx(model.eval(), get_default_qconfig_mapping(), (samples,))
    prepared(samples)
    quantized = convert_fx(prepared)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Dict, Tuple, Union

from treadle import _names, nn
from treadle.ao.quantization.fx import _convert, _prepare, _trace
from treadle.ao.quantization.fx._qconfigs import qconfigs_of
from treadle.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
)
from treadle.ao.quantization.qconfig_mapping import QConfigMapping
from treadle.fx import GraphModule

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _settings(what: str, kind: Any, given: Any) -> Any:
    if isinstance(given, dict):
        return kind.from_dict(given)
    if not isinstance(given, kind):
        raise TypeError(
            f"{what}: expected a {kind.__name__} or a dictionary, got {type(given).__name__}"
        )
    return given


def _check_backend(what: str, backend_config: Any) -> None:
    if backend_config is not None:
        raise NotImplementedError(
            f"{what}: expected backend_config=None, got one of {type(backend_config).__name__}"
        )


def _keep(source: nn.Module, target: nn.Module, names: Any) -> None:
    for name in names:
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


def fuse_fx(
    model: nn.Module,
    fuse_custom_config: Union[FuseCustomConfig, Dict[str, Any], None] = None,
    backend_config: Any = None,
) -> GraphModule:
    """A copy of a model in evaluation mode as a graph whose layers in a row are one, as of
    fuse_modules(). NotImplementedError with a backend_config."""
    _check_backend("fuse_fx", backend_config)
    custom = _settings("fuse_fx", FuseCustomConfig, fuse_custom_config or {})
    if model.training:
        raise AssertionError("fuse_fx: expected a model in evaluation mode; call eval() first")
    made, _ = _trace.traced_model(model, (), ())
    _trace.fuse(made, False)
    _keep(model, made, custom.preserved_attributes)
    return made


def _prepared(
    what: str,
    model: nn.Module,
    qconfig_mapping: Any,
    is_qat: bool,
    example_inputs: Any,
    prepare_custom_config: Any,
    backend_config: Any,
) -> GraphModule:
    _check_backend(what, backend_config)
    if not isinstance(example_inputs, (tuple, list)):
        raise TypeError(
            f"{what}: expected example_inputs to be a tuple of the model's arguments, got "
            f"{type(example_inputs).__name__}"
        )
    custom = _settings(what, PrepareCustomConfig, prepare_custom_config or {})
    mapping = _settings(what, QConfigMapping, qconfig_mapping)
    made, scopes = _trace.traced_model(
        model, custom.non_traceable_module_names, custom.non_traceable_module_classes
    )
    _trace.fuse(made, is_qat)
    _prepare.prepare(
        made,
        qconfigs_of(made, mapping, scopes),
        is_qat,
        custom.input_quantized_indexes,
        custom.output_quantized_indexes,
    )
    _keep(model, made, custom.preserved_attributes)
    made.train(model.training)
    return made


def prepare_fx(
    model: nn.Module,
    qconfig_mapping: Union[QConfigMapping, Dict[str, Any]],
    example_inputs: Tuple[Any, ...],
    prepare_custom_config: Union[PrepareCustomConfig, Dict[str, Any], None] = None,
    backend_config: Any = None,
) -> GraphModule:
    """A copy of a model in evaluation mode as a graph with observers.

    `qconfig_mapping` says what is quantized and how. `example_inputs` are arguments of the model,
    in a tuple; the graph is made without them. AssertionError for a model in training mode,
    TypeError where `example_inputs` is not a tuple or another argument is of a wrong class,
    NotImplementedError with a backend_config.
    """
    if model.training:
        raise AssertionError("prepare_fx: expected a model in evaluation mode; call eval() first")
    return _prepared(
        "prepare_fx",
        model,
        qconfig_mapping,
        False,
        example_inputs,
        prepare_custom_config,
        backend_config,
    )


def prepare_qat_fx(
    model: nn.Module,
    qconfig_mapping: Union[QConfigMapping, Dict[str, Any]],
    example_inputs: Tuple[Any, ...],
    prepare_custom_config: Union[PrepareCustomConfig, Dict[str, Any], None] = None,
    backend_config: Any = None,
) -> GraphModule:
    """A copy of a model in training mode as a graph that rounds weights and results, for training.

    The arguments and errors are those of prepare_fx(); AssertionError for a model in evaluation
    mode.
    """
    if not model.training:
        raise AssertionError(
            "prepare_qat_fx: expected a model in training mode; call train() first"
        )
    return _prepared(
        "prepare_qat_fx",
        model,
        qconfig_mapping,
        True,
        example_inputs,
        prepare_custom_config,
        backend_config,
    )


def convert_fx(
    graph_module: GraphModule,
    convert_custom_config: Union[ConvertCustomConfig, Dict[str, Any], None] = None,
    backend_config: Any = None,
) -> GraphModule:
    """The quantized model for one that prepare_fx() or prepare_qat_fx() gave and that saw samples;
    the prepared one stays as it is. ValueError for another model, and where a result that is to be
    quantized is computed on floats; NotImplementedError with a backend_config."""
    _check_backend("convert_fx", backend_config)
    if not isinstance(graph_module, GraphModule) or not hasattr(graph_module, _prepare.KNOWN):
        raise ValueError(
            "convert_fx: expected a model that prepare_fx() or prepare_qat_fx() gave, got "
            f"{type(graph_module).__name__}"
        )
    custom = _settings("convert_fx", ConvertCustomConfig, convert_custom_config or {})
    made = _convert.convert(copy.deepcopy(graph_module))
    _keep(graph_module, made, custom.preserved_attributes)
    return made


__getattr__ = _names.attributes_of(__name__)
