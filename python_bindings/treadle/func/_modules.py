"""Modules as functions of their parameters.

Example:

    y = functional_call(module, {"weight": w}, x)          # as if w were the module's weight
    params, buffers = stack_module_state([a, b, c])        # for vmap over an ensemble
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle._C import Tensor

Values = Dict[str, Tensor]


def _merged(given: Any) -> Values:
    """One dictionary of the values; ValueError for a name that stands in two."""
    if isinstance(given, dict):
        return given
    if not isinstance(given, (list, tuple)) or not all(isinstance(d, dict) for d in given):
        raise ValueError(
            "functional_call: expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
            f"dicts, got {type(given).__name__}"
        )
    merged: Values = {}
    for part in given:
        for name, value in part.items():
            if name in merged:
                raise ValueError(
                    f"functional_call: expected each name in one dictionary, got {name!r} in two"
                )
            merged[name] = value
    return merged


def _state(module: Any) -> Dict[str, Tensor]:
    """Every parameter and buffer by its name; those with several names under each."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_tied(module: Any, values: Values) -> Values:
    """The values, and under the other names of the same tensor as well."""
    names: Dict[int, List[str]] = {}
    state = _state(module)
    for name, tensor in state.items():
        names.setdefault(id(tensor), []).append(name)
    widened = dict(values)
    for name, value in values.items():
        if name not in state:
            continue
        group = names[id(state[name])]
        for other in group:
            if other in values and values[other] is not value:
                raise ValueError(
                    "functional_call: expected one value for tied tensors, got several for "
                    f"{sorted(n for n in group if n in values)}; consider tie_weights=False"
                )
            widened[other] = value
    return widened


def _check_names(module: Any, values: Values) -> None:
    state = _state(module)
    missing, unexpected = sorted(set(state) - set(values)), sorted(set(values) - set(state))
    if missing or unexpected:
        raise RuntimeError(
            f"functional_call: expected a value for each name of {type(module).__name__}, as "
            f"strict=True asks; missing: {missing}, unexpected: {unexpected}"
        )


def _place(module: Any, name: str) -> Optional[Tuple[Any, dict, str]]:
    """The submodule, its dictionary and the key that hold what has this name."""
    path, _, key = name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        return None
    for kept in (owner._parameters, owner._buffers):
        if key in kept:
            return owner, kept, key
    return None


@contextlib.contextmanager
def replaced_state(
    module: Any, values: Values, tie_weights: bool = True, strict: bool = False
) -> Iterator[None]:
    """Inside, the module has these parameters and buffers; new values that it assigns to them in
    the meantime are left in `values`."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"functional_call: expected tensors, got {type(value).__name__} for {name!r}"
            )
    used = _with_tied(module, values) if tie_weights else values
    if strict:
        _check_names(module, used)
    before: List[Tuple[dict, str, Any]] = []
    try:
        for name, value in used.items():
            place = _place(module, name)
            if place is None:
                continue
            _, kept, key = place
            before.append((kept, key, kept[key]))
            kept[key] = value
        yield
    finally:
        for name in values:
            place = _place(module, name)
            if place is not None:
                values[name] = place[1][place[2]]
        for kept, key, value in reversed(before):
            kept[key] = value


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Union[Values, Sequence[Values]],
    args: Any = None,
    kwargs: Optional[Dict[str, Any]] = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with other parameters and buffers, which stay the caller's.

    Those without a value are the module's own. With `tie_weights` a value replaces a tensor under
    all its names. In `strict` mode every name must have a value, and be one of the module's:
    RuntimeError otherwise. Arguments that are no tuple are one argument.
    """
    values = _merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced_state(module, values, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    wanted = {t.requires_grad for t in tensors}
    if len(wanted) != 1:
        raise RuntimeError(
            "stack_module_state: expected parameters that all require grad, or none, got some"
        )
    return _C.stack([t.detach() for t in tensors]).requires_grad_(wanted.pop())


def stack_module_state(models: Sequence[Any]) -> Tuple[Values, Values]:
    """The parameters and the buffers of models of one class, each stacked along a new dimension 0.

    RuntimeError for no models, models of several classes, and some in training mode only.
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: expected at least one model, got 0")
    if len({model.training for model in models}) != 1:
        raise RuntimeError("stack_module_state: expected all models in training mode, or none")
    if len({type(model) for model in models}) != 1:
        raise RuntimeError("stack_module_state: expected all models to be of the same class")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: _stacked([p[name] for p in parameters]) for name in parameters[0]},
        {name: _stacked([b[name] for b in buffers]) for name in buffers[0]},
    )


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make every batch normalisation in `root` use the statistics of its batch only, without
    running ones, which cannot be written to inside a transform. Returns `root`."""
    from treadle import nn

    for module in root.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


__all__ = [
    "functional_call",
    "replace_all_batch_norm_modules_",
    "replaced_state",
    "stack_module_state",
]
