"""Layers that follow each other become one, so that they are quantized as one.

Example:

    fused = fuse_modules(model.eval(), [["conv1", "bn1", "relu1"], ["head.0", "head.1"]])
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Optional, Sequence

from treadle import _names, nn
from treadle.ao.quantization.fuser_method_mappings import get_fuser_method
from treadle.ao.quantization.utils import pass_hooks_on, type_before_parametrizations

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(
    mod_list: Sequence[nn.Module],
    is_qat: bool,
    additional_fuser_method_mapping: Optional[Dict[Any, Any]] = None,
) -> List[nn.Module]:
    """What takes the place of each layer of a list: the fused one, then an Identity for each other.
    The hooks before the first layer and after the last one move to the fused layer. AssertionError
    for layers that cannot be one."""
    kinds = tuple(type_before_parametrizations(mod) for mod in mod_list)
    method = get_fuser_method(kinds, additional_fuser_method_mapping)
    first, last = mod_list[0], mod_list[-1]
    # Hooks go before layers are fused: the fused layer may have copies of the layers inside.
    hooks = nn.Identity()
    pass_hooks_on(first, last, hooks)
    first._forward_pre_hooks.clear()
    last._forward_hooks.clear()
    fused = method(is_qat, *mod_list)
    pass_hooks_on(hooks, hooks, fused)
    return [fused, *(nn.Identity().train(first.training) for _ in mod_list[1:])]


def _fuse(
    what: str,
    model: nn.Module,
    modules_to_fuse: Sequence[Any],
    is_qat: bool,
    inplace: bool,
    fuser_func: Callable[..., List[nn.Module]],
    fuse_custom_config_dict: Optional[Dict[str, Any]],
) -> nn.Module:
    model = model if inplace else copy.deepcopy(model)
    more = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    one_list = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if one_list else modules_to_fuse:
        if not names:
            raise ValueError(f"{what}: expected names of modules, got an empty list")
        layers = [model.get_submodule(name) for name in names]
        for name, layer in zip(names, fuser_func(layers, is_qat, more)):
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, layer)
    return model


def fuse_modules(
    model: nn.Module,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., List[nn.Module]] = fuse_known_modules,
    fuse_custom_config_dict: Optional[Dict[str, Any]] = None,
) -> nn.Module:
    """A copy of a model, or the model itself, with layers fused.

    `modules_to_fuse` is a list of names, or a list of such lists. These go together: a convolution
    or a linear layer with its normalisation, with relu(), a convolution with both, a normalisation
    with relu(). The fused layer takes the first place, and Identity the others. AssertionError for
    layers that cannot be one and for a normalisation in training mode, AttributeError for a name
    that there is not.
    """
    return _fuse(
        "fuse_modules",
        model,
        modules_to_fuse,
        False,
        inplace,
        fuser_func,
        fuse_custom_config_dict,
    )


def fuse_modules_qat(
    model: nn.Module,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., List[nn.Module]] = fuse_known_modules,
    fuse_custom_config_dict: Optional[Dict[str, Any]] = None,
) -> nn.Module:
    """fuse_modules() for training: a normalisation stays a part of the fused layer."""
    return _fuse(
        "fuse_modules_qat",
        model,
        modules_to_fuse,
        True,
        inplace,
        fuser_func,
        fuse_custom_config_dict,
    )


__getattr__ = _names.attributes_of(__name__)
