"""The operator model: what schemac wrote to opmodel.json, as frozen dataclasses.

Nothing here parses a schema or checks a rule; schemac has done both. Example:

    model = load("opmodel.json")
    add = model.entries[0]
    add.form("out").schema
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Mapping, Optional

Tree = Mapping[str, Any]  # an expression, as schemac writes it: {"op": ..., ...}


@dataclass(frozen=True)
class Expr:
    text: str
    tree: Optional[Tree]
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Type:
    text: str
    base: str  # "Tensor", "int", "Scalar", ...
    optional: bool
    list: bool
    list_size: Optional[int]
    element_optional: bool
    writes: bool  # alias annotation with '!'
    aliases: bool  # any alias annotation

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor" and not self.list

    @property
    def is_tensor_list(self) -> bool:
        return self.base == "Tensor" and self.list


@dataclass(frozen=True)
class Default:
    kind: str  # int, float, bool, string, none, list, name
    text: str
    value: Any


@dataclass(frozen=True)
class Arg:
    name: str
    type: Type
    default: Optional[Default]
    kwarg_only: bool


@dataclass(frozen=True)
class Return:
    name: Optional[str]
    type: Type


@dataclass(frozen=True)
class Form:
    form: str  # functional, inplace, out
    name: str
    overload: str
    id: str
    schema: str


@dataclass(frozen=True)
class ArgumentDtypes:
    """What a tensor argument beside the one that selects the kernel may be."""

    argument: str
    dtypes: tuple[str, ...]
    same: bool  # also the dtype of the argument that selects the kernel
    sums: bool  # also the one in which sums of its elements are kept


@dataclass(frozen=True)
class Dispatch:
    key: str
    kernel: str
    line: int


@dataclass(frozen=True)
class Saved:
    name: str
    what: str  # value, sizes, dim, numel, dtype, strides, options, device
    is_output: bool


@dataclass(frozen=True)
class Formula:
    targets: tuple[str, ...]
    text: str
    tree: Tree
    saves: tuple[Saved, ...]
    line: int = 0


@dataclass(frozen=True)
class Derivative:
    file: str
    line: int
    formulas: tuple[Formula, ...]
    non_differentiable: tuple[str, ...]
    output_differentiability: Optional[tuple[bool, ...]]


@dataclass(frozen=True)
class ForeachOf:
    """What an operator on lists does for each place of them."""

    of: str  # the entry, as in `add.Tensor`
    form: str  # of it, functional or inplace
    arguments: Mapping[str, str]  # of the entry, to their names here; others have their defaults


@dataclass(frozen=True, eq=False)  # compared by identity: there is one of each
class Entry:
    namespace: str
    name: str
    overload: str
    id: str
    schema: str
    file: str
    line: int
    doc: str
    variants: tuple[str, ...]
    python_module: Optional[str]
    tags: tuple[str, ...]
    moves: tuple[str, ...]  # arguments whose elements are moved without a look at them
    kind: str
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]
    forms: tuple[Form, ...]
    dispatch: tuple[Dispatch, ...]
    shape: Optional[Expr]
    check: tuple[Expr, ...]
    unlimited: tuple[str, ...]  # arguments of which every value is fine
    pointwise: Optional[Expr]
    reduce: Optional[Mapping[str, Expr]]
    promote: Optional[str]
    autocast: Mapping[str, str]  # device or "all" -> lower, float32, widest, as_called, refused
    dtypes: Mapping[str, tuple[str, ...]]  # device or "all" -> names
    dtype_of: Optional[str]
    argument_dtypes: tuple[ArgumentDtypes, ...]  # only of operators with kernels of their own
    out_from: Optional[str]
    foreach_of: Optional[ForeachOf]
    derivative: Optional[Derivative]

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def form(self, which: str) -> Optional[Form]:
        return next((f for f in self.forms if f.form == which), None)

    def arg(self, name: str) -> Arg:
        return next(a for a in self.args if a.name == name)

    @cached_property
    def tensor_args(self) -> tuple[Arg, ...]:
        return tuple(a for a in self.args if a.type.is_tensor)

    @cached_property
    def tensor_outputs(self) -> int:
        return sum(1 for r in self.returns if r.type.is_tensor)

    def dtypes_on(self, device: str) -> tuple[str, ...]:
        return self.dtypes.get(device, self.dtypes.get("all", ()))

    def kernel_on(self, device: str) -> Optional[Dispatch]:
        return next((d for d in self.dispatch if d.key == device), None)


@dataclass(frozen=True, eq=False)
class Model:
    functions: str  # file names as the user wrote them
    derivatives: str
    entries: tuple[Entry, ...]

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Entry, ...]]:
        """Entries by base name, in file order; every overload of a name stays together."""
        groups: dict[str, list[Entry]] = {}
        for e in self.entries:
            groups.setdefault(e.name, []).append(e)
        return {k: tuple(v) for k, v in groups.items()}

    @cached_property
    def by_full_name(self) -> Mapping[str, Entry]:
        return {e.full_name: e for e in self.entries}

    @cached_property
    def names(self) -> frozenset[str]:
        """Every base name that can be called, form names (add_, add_out) included."""
        out = set()
        for e in self.entries:
            for f in e.forms:
                out.add(e.name + "_out" if f.form == "out" else f.name)
        return frozenset(out)

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """C++ function -> base name of the entry whose header declares it."""
        out = {}
        for e in self.entries:
            for f in e.forms:
                out[f"{e.name}_out" if f.form == "out" else f.name] = e.name
        return out

    @cached_property
    def shape_rules(self) -> frozenset[str]:
        """Names of the shape rules that entries call."""
        trees = [e.shape.tree for e in self.entries if e.shape and e.shape.tree]
        return frozenset(t["fn"] if t["op"] == "call" else t["name"] for t in trees)


def _type(j: Mapping[str, Any]) -> Type:
    alias = j.get("alias")
    return Type(
        text=j["text"],
        base=j["base"],
        optional=j["optional"],
        list=j["list"],
        list_size=j.get("list_size"),
        element_optional=j.get("element_optional", False),
        writes=bool(alias and alias["write"]),
        aliases=alias is not None,
    )


def _expr(j: Optional[Mapping[str, Any]]) -> Optional[Expr]:
    if j is None:
        return None
    return Expr(j["text"], j.get("tree"), j.get("line", 0), j.get("column", 0))


def _derivative(j: Optional[Mapping[str, Any]]) -> Optional[Derivative]:
    if j is None:
        return None
    formulas = tuple(
        Formula(
            targets=tuple(f["targets"]),
            text=f["text"],
            tree=f["tree"],
            saves=tuple(Saved(s["name"], s["what"], s.get("is_output", False)) for s in f["saves"]),
            line=f.get("line", 0),
        )
        for f in j["formulas"]
    )
    differentiability = j.get("output_differentiability")
    return Derivative(
        file=j.get("location", {}).get("file", "derivatives.yaml"),
        line=j.get("location", {}).get("line", 0),
        formulas=formulas,
        non_differentiable=tuple(j.get("non_differentiable", ())),
        output_differentiability=tuple(differentiability) if differentiability else None,
    )


def _entry(j: Mapping[str, Any]) -> Entry:
    def default(d: Optional[Mapping[str, Any]]) -> Optional[Default]:
        return None if d is None else Default(d["kind"], d["text"], d.get("value"))

    return Entry(
        namespace=j.get("namespace", "aten"),
        name=j["name"],
        overload=j["overload"],
        id=j["id"],
        schema=j["schema"],
        file=j["location"]["file"],
        line=j["location"]["line"],
        doc=j.get("doc") or "",
        variants=tuple(j["variants"]),
        python_module=j.get("python_module"),
        tags=tuple(j.get("tags", ())),
        moves=tuple(j.get("moves", ())),
        kind=j["kind"],
        args=tuple(
            Arg(a["name"], _type(a["type"]), default(a["default"]), a["kwarg_only"])
            for a in j["args"]
        ),
        returns=tuple(Return(r["name"], _type(r["type"])) for r in j["returns"]),
        forms=tuple(
            Form(f["form"], f["name"], f["overload"], f["id"], f["schema"]) for f in j["forms"]
        ),
        dispatch=tuple(Dispatch(d["key"], d["kernel"], d.get("line", 0)) for d in j["dispatch"]),
        shape=_expr(j["shape"]),
        check=tuple(e for e in (_expr(c) for c in j["check"]) if e),
        unlimited=tuple(j.get("unlimited", ())),
        pointwise=_expr(j["pointwise"]),
        reduce=(
            {k: _expr(v) for k, v in j["reduce"].items()}  # type: ignore[misc]
            if j["reduce"]
            else None
        ),
        promote=j.get("promote"),
        autocast=j.get("autocast") or {},
        dtypes={k: tuple(v) for k, v in (j.get("dtypes") or {}).items()},
        dtype_of=j.get("dtype_of"),
        argument_dtypes=tuple(
            ArgumentDtypes(name, tuple(row["dtypes"]), row["same"], row["sums"])
            for name, row in (j.get("argument_dtypes") or {}).items()
        ),
        out_from=j.get("out_from"),
        foreach_of=ForeachOf(**j["foreach_of"]) if j.get("foreach_of") else None,
        derivative=_derivative(j.get("derivative")),
    )


def load(path: str | Path) -> Model:
    j = json.loads(Path(path).read_text())
    return Model(j["functions"], j["derivatives"], tuple(_entry(e) for e in j["operators"]))
