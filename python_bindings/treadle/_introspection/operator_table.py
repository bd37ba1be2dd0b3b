"""The table of operators, dtypes and devices, and how many operators there are.

    python -m treadle ops --table                 text
    python -m treadle ops --table --markdown      the same for a page
    python -m treadle ops --table --json          {"dtypes": [...], "operators": [{"name": ...}]}
    python -m treadle ops --count                 names, and how many have what each must have

A row is what an entry declares: a call with a dtype of the row works, any other is refused with an
exception that names the row. The tests of the operators verify both.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

from treadle import _C
from treadle._introspection.explain import model

Operator = Mapping[str, Any]
Row = Mapping[str, Any]

# The short names that head the columns, in the order of the model.
DTYPES = {
    dtype["name"]: "b1" if dtype["kind"] == "bool" else getattr(_C, dtype["name"]).abbr
    for dtype in model()["dtypes"]
}


def is_public(entry: Operator) -> bool:
    """Whether programs call it: neither a part of others nor the gradient of one."""
    name = entry["name"]
    internal = {"internal", "no_python"} & set(entry["tags"])
    return not (internal or name.startswith("_") or name.endswith("_backward"))


def operator_id(entry: Operator) -> str:
    """`sum.dim_IntList`."""
    return entry["name"] + (f".{entry['overload']}" if entry["overload"] else "")


def declared(entry: Operator) -> Mapping[str, Sequence[str]]:
    """The dtypes of an entry on each device of this process.

    A row for all devices holds where there are kernels for it; the meta device has the row of the
    CPU, and nothing where the shape of the result depends on values.
    """
    rows = entry["dtypes"] or {}
    everywhere = rows.get("all", ())
    devices = {"cpu": rows.get("CPU", everywhere)}
    for device in _kernel_devices(entry) - {"cpu", "meta"}:
        named = next((d for d in rows if d.lower() == device), "")
        devices[device] = rows.get(named, everywhere)
    if entry["kind"] != "returns":
        devices["meta"] = devices["cpu"]
    return {device: tuple(d for d in DTYPES if d in row) for device, row in devices.items()}


def _kernel_devices(entry: Operator) -> set[str]:
    overload = f".{entry['overload']}" if entry["overload"] else ""
    facts = _C._describe_operator(f"{entry['namespace']}::{entry['name']}{overload}")
    return {cell["device"] for cell in facts["cells"]}


def rows() -> Sequence[Row]:
    """One row for each public entry, by name."""
    return sorted(
        (
            {"name": operator_id(e), "kind": e["kind"], "devices": declared(e)}
            for e in model()["operators"]
            if is_public(e)
        ),
        key=lambda row: row["name"],
    )


def _lines(row: Row) -> Sequence[tuple[str, Sequence[str]]]:
    """(devices, dtypes) of each line of a row: devices of the same dtypes share one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for device, dtypes in row["devices"].items():
        groups.setdefault(tuple(dtypes), []).append(device)
    return [(", ".join(devices), dtypes) for dtypes, devices in groups.items()]


def as_text() -> str:
    """Columns under short names; a dot where the dtype is not declared."""
    width = max(len(row["name"]) for row in rows())
    lines = [f"{'':<{width}}  {'':<9} " + " ".join(f"{s:>4}" for s in DTYPES.values())]
    for row in rows():
        for i, (devices, dtypes) in enumerate(_lines(row)):
            cells = " ".join(f"{'yes' if d in dtypes else '.':>4}" for d in DTYPES)
            lines.append(f"{row['name'] if i == 0 else '':<{width}}  {devices:<9} {cells}")
    return "\n".join(lines)


def as_markdown() -> str:
    """The same as a table of Markdown."""
    head = ["operator", "devices", *DTYPES.values()]
    lines = ["| " + " | ".join(head) + " |", "|---|---" + "|:-:" * len(DTYPES) + "|"]
    for row in rows():
        for i, (devices, dtypes) in enumerate(_lines(row)):
            cells = ["x" if d in dtypes else "" for d in DTYPES]
            name = f"`{row['name']}`" if i == 0 else ""
            lines.append("| " + " | ".join([name, devices, *cells]) + " |")
    return "\n".join(lines)


def as_json() -> str:
    """For programs."""
    return json.dumps({"dtypes": list(DTYPES), "operators": rows()}, indent=1)


# ---- counting ------------------------------------------------------------------------------------


def has_contract(entry: Operator) -> bool:
    """Whether everything that limits a call is written down; schemac accepts no other entry."""
    tensors = any(v["type"]["base"] == "Tensor" for v in entry["args"] + entry["returns"])
    limited = bool(entry["dtypes"]) or not tensors
    shaped = bool(entry["shape"]) or entry["kind"] not in ("kernel", "returns")
    return limited and shaped


def _samples() -> Any:
    """The samples of the operators' tests; None where what they are written with is missing."""
    try:
        from treadle_testing import cases
        from treadle_testing.catalogue import by_id

        cases.load_families()
    except ImportError:
        return None
    return cases, by_id()


def count() -> str:
    """How many names programs can call, and how many of them have each of what all must have."""
    names: dict[str, list[Operator]] = {}
    for entry in model()["operators"]:
        if is_public(entry):
            names.setdefault(entry["name"].removesuffix("_"), []).append(entry)
    total = len(names)

    def having(has: Any) -> str:
        missing = sorted(name for name, entries in names.items() if not all(map(has, entries)))
        shown = f"; not {', '.join(missing[:8])}{', ...' if missing[8:] else ''}" if missing else ""
        return f"{total - len(missing)}{shown}"

    lines = [
        f"{total} operators, {sum(map(len, names.values()))} entries",
        f"  with a contract    {having(has_contract)}",
        f"  with documentation {having(lambda e: bool(e['doc']))}",
    ]
    tests = _samples()
    if tests is None:
        lines.append("  samples and references need the package treadle-testing[references]")
        return "\n".join(lines)
    cases, by_id = tests

    def is_tested(of: Any) -> Any:
        # Operators of sparse tensors have tests of their own.
        return lambda e: not cases.in_suite(by_id[operator_id(e)]) or of(by_id[operator_id(e)])

    lines.append(f"  with samples       {having(is_tested(cases.has_samples))}")
    lines.append(f"  with a reference   {having(is_tested(cases.has_reference))}")
    return "\n".join(lines)
