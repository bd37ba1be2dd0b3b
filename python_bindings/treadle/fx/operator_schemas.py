"""Arguments of a call in the order and by the names of what is called."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from treadle import nn


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by name."""

    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of an operator, one of each overload; None where there is none. With
    return_schemas=True a pair of that and the schemas."""
    schemas = _schemas_of(op)
    if not schemas:
        return (None, None) if return_schemas else None
    signatures = [_signature_of(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def _schemas_of(op: Callable) -> List[Any]:
    from treadle._ops import ops

    schema = getattr(op, "_schema", None)
    if schema is not None:
        return [schema]
    packet = op if hasattr(op, "overloads") else None
    if packet is None and isinstance(op, types.BuiltinFunctionType):
        packet = getattr(ops.aten, getattr(op, "__name__", ""), None)
    if packet is None:
        return []
    return [getattr(packet, name)._schema for name in packet.overloads()]


def _signature_of(schema: Any) -> inspect.Signature:
    kinds = inspect.Parameter
    parameters = []
    for argument in schema.arguments:
        kind = kinds.KEYWORD_ONLY if argument.kwarg_only else kinds.POSITIONAL_OR_KEYWORD
        asked = getattr(argument, "has_default_value", None)
        has_default = argument.default_value is not None if asked is None else asked()
        name = "input" if argument.name == "self" else argument.name
        parameters.append(
            kinds(name, kind, default=argument.default_value if has_default else kinds.empty)
        )
    parameters.sort(key=lambda p: p.kind)
    try:
        return inspect.Signature(parameters)
    except ValueError:  # an argument without a default behind one with
        return inspect.Signature([p.replace(default=None) for p in parameters])


def normalize_function(
    target: Callable,
    args: Tuple[Any, ...],
    kwargs: Optional[Dict[str, Any]] = None,
    arg_types: Optional[Tuple[Any, ...]] = None,
    kwarg_types: Optional[Dict[str, Any]] = None,
    normalize_to_only_use_kwargs: bool = False,
) -> Optional[ArgsKwargsPair]:
    """The arguments of a call of a function, with defaults, as its signature orders them; by name
    alone if asked. None where no signature takes them."""
    kwargs = kwargs or {}
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        try:
            signatures = [inspect.signature(inspect.unwrap(target))]
        except (TypeError, ValueError):
            return None
    for signature in signatures:
        made = _bound(signature, args, kwargs, normalize_to_only_use_kwargs)
        if made is not None:
            return made
    return None


def normalize_module(
    root: nn.Module,
    target: str,
    args: Tuple[Any, ...],
    kwargs: Optional[Dict[str, Any]] = None,
    normalize_to_only_use_kwargs: bool = False,
) -> Optional[ArgsKwargsPair]:
    """As normalize_function(), for a call of the module at a path of `root`."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"normalize_module: expected a submodule {target} of {type(root).__name__}"
        ) from None
    signature = inspect.signature(inspect.unwrap(type(module).forward))
    bound = list(signature.parameters.values())[1:]
    return _bound(inspect.Signature(bound), args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(
    signature: inspect.Signature, args: Tuple, kwargs: Dict[str, Any], only_kwargs: bool
) -> Optional[ArgsKwargsPair]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    new_args: List[Any] = []
    new_kwargs: Dict[str, Any] = {}
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if only_kwargs or parameter.kind is parameter.KEYWORD_ONLY or index >= len(args):
            new_kwargs[name] = bound.arguments[name]
        else:
            new_args.append(bound.arguments[name])
    return ArgsKwargsPair(tuple(new_args), new_kwargs)


def create_type_hint(x: Any) -> Any:
    """The type of the elements of a list or tuple of types, as a type of such."""
    if isinstance(x, (list, tuple)):
        elements = set(x)
        inside = elements.pop() if len(elements) == 1 else Any
        return List[inside] if isinstance(x, list) else Tuple[inside, ...]  # type: ignore
    return x


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type may be given where a signature says another."""
    if signature_type is argument_type or signature_type is inspect.Parameter.empty:
        return True
    origin = getattr(signature_type, "__origin__", None)
    if origin is Union:
        return any(type_matches(option, argument_type) for option in signature_type.__args__)
    if isinstance(signature_type, type) and isinstance(argument_type, type):
        return issubclass(argument_type, signature_type) or (
            signature_type is float and argument_type is int
        )
    return False


def check_for_mutable_operation(
    target: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]
) -> None:
    """RuntimeError for a call of an operator that writes to its arguments."""
    schemas = _schemas_of(target)
    if not schemas or not all(getattr(schema, "is_mutable", False) for schema in schemas):
        return
    name = getattr(target, "__name__", str(target))
    raise RuntimeError(f"trace: expected operators that write to no argument, got a call of {name}")


__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]
