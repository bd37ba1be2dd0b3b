"""State dictionaries: a Module's parameters and persistent buffers by dotted name, and putting them
back.

    state = net.state_dict()     # OrderedDict: 'body.weight' -> tensor that shares the memory
    net.load_state_dict(state)   # copies; says which names are missing, unexpected or misfit

A subclass may override `_save_to_state_dict`, `_load_from_state_dict`, `get_extra_state` and
`set_extra_state`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict, namedtuple
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.utils import hooks

from ..parameter import Parameter

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The result of `load_state_dict`."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class StateDictMixin:
    """The part of Module that saves and loads state."""

    if TYPE_CHECKING:  # Module has these
        _version: int
        _parameters: dict[str, Any]
        _buffers: dict[str, Any]
        _modules: dict[str, Any]
        _non_persistent_buffers_set: set[str]
        _state_dict_hooks: OrderedDict[int, Callable]
        _state_dict_pre_hooks: OrderedDict[int, Callable]
        _load_state_dict_pre_hooks: OrderedDict[int, Callable]
        _load_state_dict_post_hooks: OrderedDict[int, Callable]

    def get_extra_state(self) -> Any:
        """Overridden by a subclass that has state besides tensors to save."""
        raise RuntimeError(
            "get_extra_state: expected a module that overrides it, got " + type(self).__name__
        )

    def set_extra_state(self, state: Any) -> None:
        """Overridden together with `get_extra_state`."""
        raise RuntimeError(
            "set_extra_state: expected a module that overrides it, got " + type(self).__name__
        )

    def register_state_dict_post_hook(self, hook: Callable) -> hooks.RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` runs after this module's part is
        saved."""
        return hooks.add(self._state_dict_hooks, hook, (), False)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_state_dict_pre_hook(self, hook: Callable) -> hooks.RemovableHandle:
        """`hook(module, prefix, keep_vars)` runs before this module's part is saved."""
        return hooks.add(self._state_dict_pre_hooks, hook, (), False)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> hooks.RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`
        runs first."""
        return hooks.add(self._load_state_dict_pre_hooks, hook, (), False)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable, with_module: bool = False
    ) -> hooks.RemovableHandle:
        wrapped = hook if with_module else lambda module, *args: hook(*args)
        return hooks.add(self._load_state_dict_pre_hooks, wrapped, (), False)

    def register_load_state_dict_post_hook(self, hook: Callable) -> hooks.RemovableHandle:
        """`hook(module, incompatible_keys)` runs after loading and may change the lists."""
        return hooks.add(self._load_state_dict_post_hooks, hook, (), False)

    # ---- saving ------------------------------------------------------------------------------

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not StateDictMixin.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(
        self,
        *args: Any,
        destination: Optional[dict] = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict:
        """All parameters and persistent buffers by dotted name; `_metadata` on it holds the
        versions."""
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is not None:
                destination = replaced
        return destination

    # ---- loading -----------------------------------------------------------------------------

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        """Load this module's own tensors; children are done by the caller."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                self,
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        for holder in (self._parameters, self._buffers):
            for name, target in holder.items():
                if target is None or name in self._non_persistent_buffers_set:
                    continue
                key = prefix + name
                if key not in state_dict:
                    if strict:
                        missing_keys.append(key)
                    continue
                error = _load_one(holder, name, key, target, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StateDictMixin.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            self._find_unexpected(state_dict, prefix, extra_key, unexpected_keys)

    def _find_unexpected(
        self, state_dict: dict, prefix: str, extra_key: str, unexpected_keys: list
    ) -> None:
        for key in state_dict:
            if key == extra_key or not key.startswith(prefix):
                continue
            head, dot, _ = key[len(prefix) :].partition(".")
            if dot:
                if self._modules.get(head) is None:
                    unexpected_keys.append(key)
            elif (
                self._parameters.get(head) is None and self._buffers.get(head) is None
            ) or head in self._non_persistent_buffers_set:
                unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the tensors of `state_dict` into this module (or, with `assign`, take them as they
        are).

        With `strict`, names that are missing or too many are an error; sizes that do not fit always
        are.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        metadata = getattr(state_dict, "_metadata", None) or {}
        state = OrderedDict(state_dict)  # hooks may change it

        def load(module: Any, local_state: dict, prefix: str) -> None:
            local_metadata = (
                dict(metadata.get(prefix[:-1], {})) if isinstance(metadata, Mapping) else {}
            )
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(
                local_state, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    part = {
                        key: value
                        for key, value in local_state.items()
                        if key.startswith(child_prefix)
                    }
                    load(child, part, child_prefix)  # noqa: F821  deleted below, after this
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise RuntimeError(
                        "load_state_dict post hook: expected None, as the lists are changed in "
                        "place, got a value"
                    )

        load(self, state, "")
        del load  # a function that names itself would keep the tensors until they are collected
        if strict:
            if unexpected_keys:
                error_msgs.insert(
                    0, "Unexpected key(s) in state_dict: " + _quoted(unexpected_keys) + ". "
                )
            if missing_keys:
                error_msgs.insert(
                    0, "Missing key(s) in state_dict: " + _quoted(missing_keys) + ". "
                )
        if error_msgs:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(error_msgs)
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)


def _quoted(keys: list) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _load_one(
    holder: dict, name: str, key: str, target: Tensor, value: Any, assign: bool
) -> Optional[str]:
    """Put `value` where `target` is; the complaint if that cannot be done."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected a Tensor from the checkpoint, '
            f"got {type(value).__name__}"
        )
    if target.dim() == 0 and value.dim() == 1 and value.shape[0] == 1:
        value = value[0]  # early checkpoints kept single numbers with one dimension
    if tuple(value.shape) != tuple(target.shape):
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {target.shape}."
        )
    if target.is_meta and not value.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter "
            "in the current model, which is a no-op. (Did you mean to pass `assign=True` to assign "
            "items in the state dictionary to their corresponding key in the module instead of "
            "copying them in place?)",
            stacklevel=4,
        )
    try:
        if not assign:
            with no_grad():
                target.copy_(value)
        elif isinstance(target, Parameter):
            if not isinstance(value, Parameter):
                value = Parameter(value, requires_grad=target.requires_grad)
            else:
                value.requires_grad_(target.requires_grad)
            holder[name] = value
        else:
            holder[name] = value
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{target.shape} and whose dimensions in the checkpoint are {value.shape}, "
            f"an exception occurred: {error}."
        )
    return None
