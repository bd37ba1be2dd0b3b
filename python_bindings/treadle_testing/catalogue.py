"""The operators under test: entries of the model that the package was built from, and how to call
them from Python.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Callable, Mapping

import treadle
from treadle.utils import operator_library


@dataclass(frozen=True, eq=False)
class Operator:
    """One entry of native_functions.yaml, or of the YAML file of a library."""

    json: Mapping[str, Any]
    library: Any = None  # the module of the functions of a library

    def __repr__(self) -> str:
        return self.id

    @property
    def id(self) -> str:
        """`add.Tensor`; of a library `my_ops::rotary`."""
        namespace = f"{self.json['namespace']}::" if self.library else ""
        overload = f".{self.json['overload']}" if self.json["overload"] else ""
        return namespace + self.json["name"] + overload

    @property
    def name(self) -> str:
        return self.json["name"]

    @property
    def kind(self) -> str:
        return self.json["kind"]

    @property
    def internal(self) -> bool:
        return "internal" in self.json["tags"] or "no_python" in self.json["tags"]

    @property
    def public(self) -> bool:
        """Whether programs call it: neither a part of other operators nor the gradient of one."""
        return not (self.internal or self.name.startswith("_") or self.name.endswith("_backward"))

    @property
    def takes_out(self) -> bool:
        """Whether a call may be given where to write. An entry that only writes, to a list, has
        that in its samples."""
        return self.has_form("out") and self.has_form("functional")

    @property
    def is_unwritten(self) -> bool:
        """Whether the result's values are whatever the memory holds."""
        return self.name.startswith(("empty", "new_empty", "resize"))

    @property
    def random(self) -> bool:
        return bool({"random", "nondeterministic_seeded"} & set(self.json["tags"]))

    @property
    def args(self) -> list[Mapping[str, Any]]:
        return self.json["args"]

    @property
    def differentiable(self) -> bool:
        d = self.json["derivative"]
        return bool(d and d["formulas"])

    def has_form(self, form: str) -> bool:
        return any(f["form"] == form for f in self.json["forms"])

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes the entry declares for the CPU."""
        table = self.json["dtypes"] or {}
        return tuple(table.get("CPU", table.get("all", ())))

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The functional form: a module function, else a method; `treadle.ops` has it where Python
        is given neither."""
        if self.internal and self.library is None:
            return getattr(treadle.ops.aten, self.name)
        return getattr(
            self._place if "function" in self.json["variants"] else treadle.Tensor, self.name
        )

    @property
    def _place(self) -> Any:
        """The module in which the functions of the entry are bound."""
        if self.library is not None:
            return self.library
        module = self.json["python_module"]
        return treadle._C if module is None else getattr(treadle._C, "_" + module)

    @cached_property
    def inplace(self) -> Callable[..., Any]:
        """The in-place form: a method, else a module function."""
        name = next(f["name"] for f in self.json["forms"] if f["form"] == "inplace")
        method = getattr(treadle.Tensor, name, None) if self.library is None else None
        return method if method is not None else getattr(self._place, name)


@lru_cache(maxsize=None)
def _model() -> Mapping[str, Any]:
    path = Path(treadle.__file__).parent / "opmodel.json"
    return json.loads(path.read_text())


@lru_cache(maxsize=None)
def scalar_functions() -> Mapping[str, Mapping[str, Any]]:
    """The functions of elements by name, as aten/scalar/functions.yaml has them."""
    return {f["name"]: f for f in _model()["scalar_functions"] if not f["is_operator"]}


@lru_cache(maxsize=None)
def operators(library: str = "aten") -> tuple[Operator, ...]:
    """Treadle's own, or those of a library that is loaded."""
    if library == "aten":
        return tuple(Operator(j) for j in _model()["operators"])
    loaded = operator_library.libraries().get(library)
    assert loaded is not None, f"expected a library that is imported, got {library!r}"
    return tuple(Operator(j, loaded.module) for j in loaded.model["operators"])


@lru_cache(maxsize=None)
def by_id() -> Mapping[str, Operator]:
    return {o.id: o for o in operators()}
