"""The facts of the entry of an operator that tell how it may be computed in pieces.

All is read from the model that the library was generated from: kind, schema, expressions, shape
rule, formulas of gradients.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from treadle._introspection.explain import entry_of, model

Tree = Mapping[str, Any]
Names = FrozenSet[str]

# The reductions that are known by how two partial results become one.
_WAYS = {
    "a + b": "sum",
    "a * b": "product",
    "maximum(a, b)": "max",
    "minimum(a, b)": "min",
    "logical_or(a, b)": "max",
    "logical_and(a, b)": "min",
}


@dataclasses.dataclass(frozen=True)
class Facts:
    """One form of an operator."""

    name: str  # "aten::add_.Tensor"
    entry: Mapping[str, Any]
    form: str  # "functional", "inplace", "out"
    functional: Optional[str]  # the full name of the form that writes nothing
    arguments: Tuple[str, ...]  # the names of the arguments
    tensors: Tuple[str, ...]  # those that are tensors, or lists of them
    written: Tuple[str, ...]  # those that the operator writes
    family: str  # the shape rule of a kernel, else the kind
    is_random: bool
    makes: bool  # whether its result is a new tensor with options: dtype, layout, device

    @functools.cached_property
    def linear(self) -> List[Names]:
        """The sets of tensors in which a pointwise result is linear, the others held."""
        tree = self.entry["pointwise"] and self.entry["pointwise"]["tree"]
        if not tree:
            return []
        names = [name for name in self.tensors if name != "out"]
        subsets = (
            frozenset(chosen)
            for count in range(len(names), 0, -1)
            for chosen in itertools.combinations(names, count)
        )
        return [chosen for chosen in subsets if _degree(tree, chosen) == 1]

    @property
    def way(self) -> Optional[str]:
        """How the partial results of a reduction become one; None if that is not known."""
        return _WAYS.get(self.entry["reduce"]["combine"]["text"])

    @property
    def divides(self) -> bool:
        """Whether a reduction divides by the number of elements at the end."""
        return "final" in self.entry["reduce"]

    @functools.cached_property
    def identity(self) -> bool:
        """Whether the result has the values of the argument: its gradient is the incoming one."""
        formulas = self._formulas()
        return len(self.tensors) == 1 and list(formulas.values()) == [
            {"op": "name", "name": "grad"}
        ]

    @functools.cached_property
    def overwrites(self) -> bool:
        """Whether the result does not depend on the elements of the argument that is written."""
        tree = self._formulas().get(self.written[0]) if len(self.written) == 1 else None
        return tree is not None and tree.get("fn") == "zeros_like"

    @functools.cached_property
    def view_of(self) -> Optional[Tuple[str, Tuple[str, ...]]]:
        """The view of the result that the argument is, and the names of the view's arguments: the
        gradient of such an operator is a view of the incoming one."""
        formulas = self._formulas()
        tree = formulas.get(self.tensors[0]) if len(self.tensors) == 1 else None
        if not tree or tree["op"] != "call" or tree["callee"].get("kind") != "operator":
            return None
        views = [
            each
            for each in model()["operators"]
            if each["name"] == tree["callee"]["function"] and each["kind"] == "view"
        ]
        names = [arg.get("name") for arg in tree["args"]]
        if len(views) != 1 or names[0] != "grad" or None in names:
            return None
        return f"aten::{_full(views[0])}", tuple(names[1:])

    def _formulas(self) -> Dict[str, Any]:
        """The formula of the gradient of each argument, as a tree."""
        derivative = self.entry["derivative"]
        found = {}
        for formula in derivative["formulas"] if derivative else []:
            tree = formula["tree"]
            if tree.get("op") == "name":
                tree = {"op": "name", "name": tree["name"]}
            for target in formula["targets"]:
                found[target] = tree
        return found


def _degree(tree: Tree, names: Names) -> Optional[int]:
    """1 if an expression is linear in these names together, 0 if it has none of them, else None."""
    op = tree["op"]
    if op == "name":
        return int(tree["name"] in names)
    if op == "unary" and tree.get("operator") == "-":
        return _degree(tree["of"], names)
    parts = [_degree(part, names) for part in _parts(tree)]
    if op == "binary" and tree["operator"] in ("+", "-"):
        return parts[0] if parts[0] == parts[1] else None
    if op == "binary" and tree["operator"] == "*":
        return None if None in parts or sum(parts) > 1 else sum(parts)  # type: ignore[arg-type]
    if op == "binary" and tree["operator"] == "/":
        return parts[0] if parts[1] == 0 else None
    if op == "select" and parts[0] == 0:
        return parts[1] if parts[1] == parts[2] else None
    return 0 if all(part == 0 for part in parts) else None


def _parts(tree: Tree) -> List[Tree]:
    found: List[Tree] = []
    for value in tree.values():
        if isinstance(value, dict) and "op" in value:
            found.append(value)
        elif isinstance(value, list):
            found += [part for part in value if isinstance(part, dict) and "op" in part]
    return found


def _full(form: Mapping[str, Any]) -> str:
    return form["name"] + (f".{form['overload']}" if form["overload"] else "")


def _is_tensor(argument: Mapping[str, Any]) -> bool:
    return argument["type"]["base"] == "Tensor"


@functools.lru_cache(maxsize=None)
def facts_of(name: str) -> Optional[Facts]:
    """The facts of an operator, by its full name; None for one that has no entry."""
    entry = entry_of(name)
    if entry is None:
        return None
    forms = {f"{entry['namespace']}::{_full(form)}": form for form in entry["forms"]}
    form = forms[name]
    functional = next((n for n, f in forms.items() if f["form"] == "functional"), None)
    args = form["args"]
    names = tuple(arg["name"] for arg in args)
    shape = entry["shape"]
    family = shape["tree"]["fn"] if entry["kind"] == "kernel" and "fn" in shape["tree"] else ""
    return Facts(
        name=name,
        entry=entry,
        form=form["form"],
        functional=functional,
        arguments=names,
        tensors=tuple(arg["name"] for arg in args if _is_tensor(arg)),
        written=tuple(
            arg["name"] for arg in args if (arg["type"]["alias"] or {}).get("write", False)
        ),
        family=family or entry["kind"],
        is_random=bool({"random", "nondeterministic_seeded"} & set(entry["tags"])),
        makes={"dtype", "layout", "device"} <= set(names) and "self" in names,
    )


@functools.lru_cache(maxsize=1)
def makers() -> FrozenSet[str]:
    """The names of operators that make a tensor like another one, whose elements do not count."""
    return frozenset(
        entry["name"]
        for entry in model()["operators"]
        if "differentiable_none" in entry["tags"]
        and {"self", "dtype", "layout", "device"} <= {arg["name"] for arg in entry["args"]}
    )


__all__ = ["Facts", "facts_of", "makers"]
