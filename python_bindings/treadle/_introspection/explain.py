"""explain: what a call of an operator will do, and where each part of it is written.

    $ python -m treadle explain add
    >>> treadle.explain("add")                # every overload
    >>> treadle.explain(treadle.add, x, 2)    # the route of this very call

The facts come from the model that the library was generated from and from the dispatcher's own
tables.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import difflib
import functools
import json
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, TextIO, Tuple, Union

from treadle import _C

Operator = Mapping[str, Any]
_KIND_TEXTS = {
    "pointwise": "computed for each element",
    "reduce": "folds elements along dimensions",
    "kernel": "a kernel writes results whose shapes are known before",
    "returns": "a kernel makes results whose shapes depend on values",
    "view": "a view: shares memory, runs no kernel",
    "composite": "built from other operators",
    "mutating": "writes to its argument",
}


@functools.lru_cache(maxsize=1)
def model() -> Mapping[str, Any]:
    """The operator model that the library was generated from."""
    return json.loads((Path(__file__).parent.parent / "opmodel.json").read_text())


@functools.lru_cache(maxsize=1)
def _entries() -> Mapping[str, Operator]:
    """Entries by the full name of each of their forms, "aten::add_.Tensor"."""
    found = {}
    for entry in model()["operators"]:
        for form in entry["forms"]:
            found[_full_name(entry, form)] = entry
    return found


def entry_of(name: str) -> Optional[Operator]:
    """The entry of an operator by its full name, "aten::add_.Tensor"; None for one without."""
    return _entries().get(name)


def _full_name(entry: Operator, form: Mapping[str, Any]) -> str:
    overload = f".{form['overload']}" if form["overload"] else ""
    return f"{entry['namespace']}::{form['name']}{overload}"


def explain(
    operator: Union[str, Callable], *args: Any, file: Optional[TextIO] = None, **kwargs: Any
) -> None:
    """Print what is known of an operator; with arguments, the route of that call."""
    text = describe(operator, *args, **kwargs)
    print(text, file=file or sys.stdout)


def describe(operator: Union[str, Callable], *args: Any, **kwargs: Any) -> str:
    """The text that explain() prints."""
    name = _python_name(operator)
    if args or kwargs:
        if "::" in name:
            raise ValueError(f"explain: expected no arguments for an operator of a library, {name}")
        return "\n".join(_call_lines(name, _is_method(operator, name), args, kwargs))
    defined = _defined(name)
    if defined:
        return "\n\n".join("\n".join(_defined_lines(full)) for full in defined)
    blocks = ["\n".join(_entry_lines(entry)) for entry in _find(name)]
    return "\n\n".join(blocks)


def _defined(name: str) -> Sequence[str]:
    """The operators without an entry: those of a name with its namespace, or the one of a name with
    its overload."""
    from treadle.utils import operator_library

    namespace, _, plain = name.rpartition("::")
    if not plain or not namespace or namespace in operator_library.libraries():
        return []
    names = _C._library_overloads(name.partition(".")[0])
    return [n for n in names if name in (n, n.partition(".")[0]) and not entry_of(n)]


def _defined_lines(name: str) -> Iterable[str]:
    """Of an operator that was defined while the program runs."""
    facts = _C._describe_operator(name)
    yield facts["schema"]
    yield from _row("declared", [_place(facts["file"], facts["line"])])
    places = {cell["device"]: _place(cell["file"], cell["line"]) for cell in facts["cells"]}
    yield from _row("kernels", [f"{device}: {place}" for device, place in places.items()])
    yield from _row("layers", _layer_lines(facts["layers"]))


def _python_name(operator: Union[str, Callable]) -> str:
    if isinstance(operator, str):
        return operator
    full = getattr(operator, "_qualified_op_name", getattr(operator, "_name", None))
    if full is not None and not full.startswith("aten::"):
        return full
    name = getattr(operator, "__name__", None)
    if name is None:
        raise TypeError(f"explain: expected an operator or its name, got {type(operator).__name__}")
    from treadle.utils import operator_library

    library = str(getattr(operator, "__module__", "")).removesuffix("._C")
    return f"{library}::{name}" if library in operator_library.libraries() else name


def _is_method(operator: Union[str, Callable], name: str) -> bool:
    if isinstance(operator, str):
        return not any(b[0] == name and b[3] for b in _C._bindings())
    return type(operator).__name__ == "method_descriptor"


def _find(name: str) -> Sequence[Operator]:
    """Entries of a name: "add", "add_", "add.Tensor", "aten::add.Tensor", "my_ops::rotary"."""
    from treadle.utils import operator_library

    namespace, _, plain = name.rpartition("::")
    library = operator_library.libraries().get(namespace)
    operators = (library.model if library else model())["operators"]
    if namespace not in ("", "aten") and not library:
        operators = []
    found = []
    for entry in operators:
        names = {entry["name"], entry["id"]}
        for form in entry["forms"]:
            names |= {form["name"], _full_name(entry, form).partition("::")[2]}
        if plain in names:
            found.append(entry)
    if not found:
        known = sorted({entry["name"] for entry in operators})
        near = difflib.get_close_matches(plain, known, 5)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise ValueError(f"explain: expected the name of an operator, got '{name}'{hint}")
    return found


# ---- an entry ------------------------------------------------------------------------------------


def _entry_lines(entry: Operator) -> Iterable[str]:
    yield _schema(entry, entry)
    yield from _row("", _wrapped(entry["doc"]))
    yield from _row("declared", [_place(entry["location"]["file"], entry["location"]["line"])])
    yield from _row("kind", [f"{entry['kind']}: {_KIND_TEXTS.get(entry['kind'], '')}"])
    yield from _row("computes", _expressions(entry))
    yield from _row("promotion", [entry["promote"]] if entry["promote"] else [])
    rows = (entry["autocast"] or {}).items()
    yield from _row("autocast", [p if d == "all" else f"{d}: {p}" for d, p in rows])
    yield from _row("shape rule", [entry["shape"]["text"]] if entry["shape"] else [])
    yield from _row("checks", [check["text"] for check in entry["check"]])
    yield from _row(
        "dtypes", [f"{device}: {', '.join(d)}" for device, d in (entry["dtypes"] or {}).items()]
    )
    yield from _row("forms", [f"{f['form']:<11}{_schema(entry, f)}" for f in entry["forms"]])
    yield from _row("gradient", _gradient(entry))
    yield from _row("tangent", _tangent(entry))
    yield from _row("in Python", _python_forms(entry))
    for form in entry["forms"]:
        facts = _C._describe_operator(_full_name(entry, form))
        if form is entry["forms"][0]:
            yield from _row("kernels", _kernel_lines(entry, facts))
        yield from _row(f"layers, {form['form']}", _layer_lines(facts["layers"]))


def _schema(entry: Operator, form: Mapping[str, Any]) -> str:
    """With the namespace, which Treadle's own schemas leave out."""
    prefix = f"{entry['namespace']}::"
    return prefix + form["schema"].removeprefix(prefix)


def _row(title: str, lines: Iterable[str]) -> Iterable[str]:
    for i, line in enumerate(lines):
        yield f"  {title if i == 0 else '':<20}{line}".rstrip()


def _wrapped(text: str) -> Sequence[str]:
    import textwrap

    return textwrap.wrap(" ".join(text.split()), 90)


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _kernel_place(entry: Operator, file: str, line: int) -> str:
    """A generated kernel is written where its entry is."""
    location = entry["location"]
    return _place(file, line or location["line"] if file == location["file"] else line)


def _expressions(entry: Operator) -> Sequence[str]:
    if entry["pointwise"]:
        return [entry["pointwise"]["text"]]
    return [f"{part}: {value['text']}" for part, value in (entry["reduce"] or {}).items()]


def _gradient(entry: Operator) -> Sequence[str]:
    derivative = entry["derivative"]
    if not derivative:
        if entry["kind"] in ("composite", "view"):
            return ["follows from the operators it is built from"]
        missing = (entry["derivation"] or {"missing": {}})["missing"]
        return [f"none by {argument}: {why}" for argument, why in missing.items()] or ["none"]
    lines = [_place(derivative["location"]["file"], derivative["location"]["line"])]
    for formula in derivative["formulas"]:
        derived = "  (derived)" if formula["derived"] else ""
        lines.append(f"{', '.join(formula['targets'])}: {formula['text']}{derived}")
    if derivative.get("non_differentiable"):
        lines.append(f"not differentiable: {', '.join(derivative['non_differentiable'])}")
    return lines


def _tangent(entry: Operator) -> Sequence[str]:
    """How the result changes where each argument `self` changes by `self_t`."""
    tangent = (entry["derivation"] or {"tangent": None})["tangent"]
    return [tangent["text"]] if tangent else []


def _python_forms(entry: Operator) -> Sequence[str]:
    if {"internal", "no_python"} & set(entry["tags"]):
        return ["not bound: other operators call it"]
    names = []
    for form in entry["forms"]:
        if form["form"] == "out":
            names.append("out=")
            continue
        if "function" in entry["variants"]:
            module = entry["python_module"]
            package = "treadle" if entry["namespace"] == "aten" else entry["namespace"]
            names.append(f"{package}.{'_C._' + module + '.' if module else ''}{form['name']}")
        if "method" in entry["variants"]:
            names.append(f"Tensor.{form['name']}")
    return [", ".join(names)]


def _kernel_lines(entry: Operator, facts: Mapping[str, Any]) -> Sequence[str]:
    rows: dict = {}
    for cell in facts["cells"]:
        where = (
            cell["device"],
            cell["layout"],
            cell.get("source", ""),
            cell.get("file", ""),
            cell.get("line", 0),
        )
        rows.setdefault((*where, cell.get("name", "")), []).append(cell["dtype"])
    lines = []
    for (device, layout, source, file, line, name), dtypes in rows.items():
        lines.append(f"{device} {layout}: {', '.join(dtypes)}")
        lines.append(f"    {source}: {name or entry['id']}  {_kernel_place(entry, file, line)}")
    return lines or _written_by_hand(entry)


def _written_by_hand(entry: Operator) -> Sequence[str]:
    """Views and composites have no table: one C++ function serves every device and dtype."""
    for dispatch in entry["dispatch"]:
        place = _place(entry["location"]["file"], dispatch.get("line", 0))
        return [f"{dispatch['key'].lower()} function {dispatch['kernel']}  named at {place}"]
    return [f"{entry['kind']} function {entry['id']}"]


def _layer_lines(layers: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    return [
        f"{layer['layer']}  {layer['source']}  {_place(layer['file'], layer['line'])}"
        for layer in layers
    ]


# ---- a call --------------------------------------------------------------------------------------


def _tensors_in(values: Iterable[Any]) -> Sequence[_C.Tensor]:
    found = []
    for value in values:
        if isinstance(value, _C.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _tensors_in(value)
    return found


def _call_lines(
    name: str, method: bool, args: Tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterable[str]:
    operator = _C._resolve_operator(name, method, args, dict(kwargs))
    entry = _entries()[operator]
    if kwargs.get("out") is not None:
        operator = next(_full_name(entry, f) for f in entry["forms"] if f["form"] == "out")
    facts = _C._describe_operator(operator)
    tensors = _tensors_in([*args, *kwargs.values()])
    yield f"{name}({', '.join(_shown(a) for a in args)})"
    yield from _row("operator", [facts["schema"], _place(facts["file"], facts["line"])])
    yield from _row("checks", facts["checks"])
    yield from _row("shape rule", [facts["shape"]] if facts["shape"] else [])
    active = _C._active_layers(operator, *tensors)
    places = {layer["layer"]: layer for layer in facts["layers"]}
    route = _layer_lines(places[layer] for layer in active if layer in places)
    yield from _row("layers", route or ["none: straight to the operator"])
    yield from _row("kernel", _chosen_kernel(entry, facts, tensors))


def _shown(value: Any) -> str:
    if isinstance(value, _C.Tensor):
        return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)} on {value.device}"
    return repr(value)


def _chosen_kernel(
    entry: Operator, facts: Mapping[str, Any], tensors: Sequence[_C.Tensor]
) -> Sequence[str]:
    if not facts["cells"]:
        return _written_by_hand(entry)
    device = next(
        (str(t.device.type) for t in tensors if t.dim() > 0),
        str(tensors[0].device.type) if tensors else "cpu",
    )
    if device == "meta":
        return ["none: the shape rule alone gives the result on the meta device"]
    dtype = _kernel_dtype(entry, tensors)
    for cell in facts["cells"]:
        if cell["device"] == device and cell["dtype"] == dtype:
            name = cell["name"] or entry["id"]
            what = f"{device} {cell['layout']} {dtype}: {cell['source']}: {name}"
            return [what, _kernel_place(entry, cell["file"], cell["line"])]
    have = sorted({cell["dtype"] for cell in facts["cells"] if cell["device"] == device})
    return [f"none for {device} {dtype}; there are kernels for {', '.join(have) or 'no dtype'}"]


def _kernel_dtype(entry: Operator, tensors: Sequence[_C.Tensor]) -> str:
    """The dtype that chooses the kernel: promoted for pointwise operators, else the first
    tensor's."""
    dtype = tensors[0].dtype if tensors else _C.get_default_dtype()
    if entry["kind"] == "pointwise":
        for t in tensors[1:]:
            dtype = _C.promote_types(dtype, t.dtype)
        if entry["promote"] == "float" and not (dtype.is_floating_point or dtype.is_complex):
            dtype = _C.get_default_dtype()
    return str(dtype).rpartition(".")[2]
