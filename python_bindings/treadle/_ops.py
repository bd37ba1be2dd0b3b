"""treadle.ops: every operator by its full name.

    treadle.ops.aten.add.Tensor(a, b)      # one overload
    treadle.ops.my_ns.scale(x, 2.0)        # of an operator with overloads the first that fits
    treadle.ops.my_ns.scale.default        # the overload that has no name

Namespaces, names and overloads are made when they are first asked for.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import importlib
import types
from typing import Any, Dict, Iterator, List, Optional, Set, Type

from treadle import _C, _names
from treadle._introspection.schema import FunctionSchema, schema_of

# Tags given to operators where they were defined, by full name.
tags_of: Dict[str, List[Any]] = {}


@functools.lru_cache(maxsize=None)
def _is_never_seen(name: str) -> bool:
    """Whether modes see what an operator of the library is made of, and never its own calls."""
    return not _C._describe_operator(name)["is_seen"]


def _restore(name: str) -> "OpOverload":
    return overload_named(name)


class OpOverload(_C._OperatorCall):
    """One operator. Calling it raises RuntimeError where the arguments do not fit its schema, and
    NotImplementedError where it has no kernel for their device."""

    def __init__(self, qualified_name: str, packet: "OpOverloadPacket") -> None:
        self._schema: FunctionSchema = schema_of(qualified_name)
        self._overloadpacket = packet
        self._name = qualified_name
        self._opname, self._overloadname = packet.__name__, self._schema.overload_name or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = packet.__module__
        self._speak_for()

    @property
    def namespace(self) -> str:
        """The part of the name before '::'."""
        return self._name.split("::")[0]

    @property
    def overloadpacket(self) -> "OpOverloadPacket":
        """The name this is an overload of."""
        return self._overloadpacket

    @property
    def op(self) -> "OpOverload":
        """The operator that is called: this."""
        return self

    @property
    def tags(self) -> List[Any]:
        """The tags of the operator: members of treadle.Tag."""
        from treadle._introspection.tags import tags_of_generated

        return tags_of.get(self._name) or tags_of_generated(self._name)

    def name(self) -> str:
        """The full name: "aten::add.Tensor"."""
        return self._name

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """The result, by way of what the operator is made of; NotImplemented for one whose calls
        modes over operators see."""
        return self(*args, **kwargs) if _is_never_seen(self._name) else NotImplemented

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether the device that the key names has a kernel."""
        from treadle._library.keys import device_of_key

        device = device_of_key(str(key))
        return device is not None and _C._library_has_kernel(self._name, device)

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __deepcopy__(self, memo: Any = None) -> "OpOverload":
        return self

    def __reduce__(self) -> Any:
        return _restore, (self._name,)


class OpOverloadPacket(_C._OperatorPacketCall):
    """A name with its overloads; a call goes to the first whose schema the arguments fit."""

    _overload_class: Type[OpOverload] = OpOverload

    def __init__(self, qualified_name: str, namespace: str) -> None:
        self._qualified_op_name = qualified_name
        self._namespace = namespace
        self.__name__ = qualified_name.split("::")[1]
        self.__qualname__ = self.__name__
        self.__module__ = f"{_names.PACKAGE}._ops.{namespace}"
        self._found: Dict[str, OpOverload] = {}
        self._refresh()

    def _refresh(self) -> None:
        """See what overloads there are now."""
        names = _C._library_overloads(self._qualified_op_name)
        found = {}
        for full in names:
            overload = full.partition(".")[2] or "default"
            known = self._found.get(overload)
            found[overload] = known if known is not None else self._overload_class(full, self)
        self._found = found
        self._set_overloads(tuple(found.values()))

    def overloads(self) -> List[str]:
        """The names of the overloads."""
        return list(self._found)

    @property
    def op(self) -> "OpOverloadPacket":
        """The operator that is called: this."""
        return self

    @property
    def _schemas(self) -> Dict[str, FunctionSchema]:
        return {name: overload._schema for name, overload in self._found.items()}

    def __getattr__(self, name: str) -> OpOverload:
        known = self.__dict__.get("_found", {})
        # The form with `out` of the overload for tensors is also called by this word alone.
        found = known.get(name) or known.get("Tensor_out" if name == "out" else name)
        if found is None:
            raise AttributeError(
                f"{self.__dict__.get('_qualified_op_name')}: expected one of its overloads "
                f"({', '.join(known)}), got '{name}'",
                name=name,
                obj=self,
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._found})

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{str(self)}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __deepcopy__(self, memo: Any = None) -> "OpOverloadPacket":
        return self

    def __reduce__(self) -> Any:
        return packet_named, (self._qualified_op_name,)


def _packet_class(qualified: str) -> Type[OpOverloadPacket]:
    if not qualified.startswith("profiler::"):
        return OpOverloadPacket
    from treadle.profiler import _operators

    return _operators.RangePacket


def _define_written(qualified: str) -> bool:
    """Defines an operator that is written in Python; whether there is one of that name."""
    from treadle._library import python_operators

    return python_operators.define(qualified)


class _OpNamespace(types.ModuleType):
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{_names.PACKAGE}.ops.{name}")
        self.name = name
        self._dir: List[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._dir)

    def __getattr__(self, name: str) -> OpOverloadPacket:
        qualified = f"{self.__dict__['name']}::{name}"
        known = not name.startswith("__") and (
            _C._library_overloads(qualified) or _define_written(qualified)
        )
        if not known:
            raise AttributeError(
                f"'_OpNamespace' '{self.__dict__['name']}' object has no attribute '{name}'",
                name=name,
                obj=self,
            )
        packet = _packet_class(qualified)(qualified, self.name)
        setattr(self, name, packet)
        self._dir.append(name)
        return packet

    def _changed(self, name: str) -> None:
        """An operator of the name was defined, or taken back."""
        packet = self.__dict__.get(name)
        if packet is None:
            return
        packet._refresh()
        if not packet.overloads():
            delattr(self, name)
            self._dir.remove(name)


# Shared libraries that are for PyTorch, by folder and how their names begin, and the modules that
# define what is in them.
_REPLACED = {
    "torchvision/_C": "treadle._vision",
    "torchvision/image": "treadle._vision.images",
    "torchaudio/lib/_torchaudio": "treadle._audio",
    "torchaudio/lib/libtorchaudio": "treadle._audio",
}


def _replacement_of(path: str) -> Optional[str]:
    """The module that defines the operators of a shared library that is for PyTorch."""
    folder, _, name = path.rpartition("/")
    for start, module in _REPLACED.items():
        place, _, first = start.rpartition("/")
        if folder.endswith("/" + place) and name.startswith(first):
            return module
    return None


class _Ops(types.ModuleType):
    """treadle.ops."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__(f"{_names.PACKAGE}.ops")
        self.loaded_libraries: Set[str] = set()
        self._dir: List[str] = []

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        self._dir.append(name)
        return namespace

    def __iter__(self) -> Iterator[str]:
        return iter(self._dir)

    def import_module(self, module: str) -> None:
        """Import a Python module that defines operators."""
        importlib.import_module(module)

    def load_library(self, path: Any) -> None:
        """Load a shared library, whose operators are known from then on: one for Treadle, or one
        that was compiled for PyTorch and calls it by its stable ABI. OSError where that cannot be
        done, ImportError where it was built for another Treadle or needs other functions of
        PyTorch, RuntimeError where what it registers is refused. In place of such a library of
        torchvision's or torchaudio's the package's own operators of those names are defined."""
        import os

        from treadle import _stable_abi
        from treadle.utils import operator_library

        path = os.path.realpath(os.fspath(path))
        if path in self.loaded_libraries:
            return
        needs = _stable_abi.needs_of(path) if os.path.isfile(path) else _stable_abi.Needs()
        replacement = _replacement_of(path)
        if not _stable_abi.is_for_pytorch(needs) or (replacement and _stable_abi.why_not(needs)):
            if replacement:
                importlib.import_module(replacement).define()
            else:
                operator_library.load_file(path)
        else:
            _stable_abi.load(path, needs)
        self.loaded_libraries.add(path)


ops = _Ops()


def packet_named(qualified_name: str) -> OpOverloadPacket:
    """The packet of "my_ns::name"; AttributeError for an unknown one."""
    ns, _, name = qualified_name.partition("::")
    return getattr(getattr(ops, ns), name)


def overload_named(full_name: str) -> OpOverload:
    """The overload of "my_ns::name.overload"; AttributeError for an unknown one."""
    name, _, overload = full_name.partition(".")
    return getattr(packet_named(name), overload or "default")


def overload_shown(full_name: str) -> OpOverload:
    """The overload that modes are told of for the operator of a full name: that for tensors, with
    the number in the tensor's place, where the entry of one with a number is `as_tensor`."""
    from treadle._introspection.explain import entry_of

    name, _, overload = full_name.partition(".")
    entry = entry_of(full_name) if overload.startswith("Scalar") else None
    if entry is None or entry["foreach_of"] or "as_tensor" not in entry["tags"]:
        return overload_named(full_name)
    packet = packet_named(name)
    with_tensor = overload.replace("Scalar", "Tensor", 1)
    return getattr(packet, with_tensor if with_tensor in packet.overloads() else "default")


def find_overload(op: Any) -> Optional[str]:
    """The full name of what a program gives as an operator: a name, an overload, or an object that
    stands for one. None for anything else."""
    if isinstance(op, str):
        return op.removesuffix(".default")
    name = getattr(op, "_opoverload", op)
    return name._name if isinstance(name, OpOverload) else None
