"""Prints what is public in a package, as JSON: {"torch.nn.Linear": ["class", [["bias", "True"]]]}.

    python public_names.py                  # of the torch that is installed
    python public_names.py treadle          # of this package, under the name of torch
    ... public_names.py treadle < names     # and of the names that are read, public or not

It runs alone, so that ./dev names can start it with any Python. A name is public if its module says
so by `__all__`, or else if it has no underscore before it and was made in the package. Parameters
are those of a signature, or, of functions without one, of the schemas of the operator; each comes
with the text of its default, or null.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings
from typing import Any, Iterator

# Modules that are programs, or that ask for packages or devices when they are imported.
PASSED_OVER = (
    "torch.testing",
    "torch.utils.benchmark.examples",
    "torch.utils.hipify",
    "torch.distributed.elastic",
    "torch.contrib",
    "torch.utils.tensorboard",
    "torch.utils.viz",
)
# Classes whose members are public, too.
CLASSES = (
    "torch.Tensor",
    "torch.Generator",
    "torch.Size",
    "torch.dtype",
    "torch.device",
    "torch.Stream",
    "torch.Event",
    "torch.UntypedStorage",
    "torch.TypedStorage",
    "torch.nn.Module",
    "torch.optim.Optimizer",
    "torch.autograd.Function",
    "torch.autograd.graph.Node",
    "torch.utils.data.DataLoader",
    "torch.utils.data.Dataset",
    "torch.library.Library",
    "torch.fx.Graph",
    "torch.fx.GraphModule",
    "torch.fx.Interpreter",
    "torch.fx.Node",
    "torch.fx.Proxy",
    "torch.fx.Tracer",
)
_OPERATORS = {
    "torch": "{}",
    "torch.Tensor": "{}",
    "torch.nn.functional": "{}",
    "torch.special": "special_{}",
    "torch.linalg": "linalg_{}",
    "torch.fft": "fft_{}",
}


def modules(package: Any) -> Iterator[str]:
    """The public modules, `torch` first."""
    waiting = [package]
    while waiting:
        module = waiting.pop(0)
        yield module.__name__.replace("treadle", "torch", 1)
        for found in pkgutil.iter_modules(getattr(module, "__path__", [])):
            name = f"{module.__name__}.{found.name}"
            if found.name.startswith("_") or name.startswith(PASSED_OVER):
                continue
            try:
                waiting.append(importlib.import_module(name))
            except (Exception, SystemExit):  # noqa: BLE001, S112  what cannot be has no names
                continue


def is_of(package: str, value: Any) -> bool:
    """Whether something was made in the package; numbers and the like are nobody's."""
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith(package + ".")
    made = getattr(value, "__module__", None)
    return made is None or str(made).partition(".")[0] in (package, "treadle")


def names_of(owner: Any, package: str) -> list[str]:
    """The public names of a module or a class."""
    if isinstance(owner, type):
        return [name for name in dir(owner) if not name.startswith("_")]
    listed = getattr(owner, "__all__", None)
    if listed is not None:
        return sorted(set(listed))
    values = ((n, getattr(owner, n, None)) for n in dir(owner) if not n.startswith("_"))
    skipped = (types.GenericAlias, type(inspect._empty), type(Any))
    return [n for n, v in values if is_of(package, v) and not isinstance(v, skipped)]


def kind_of(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "value"


def _text(default: Any) -> str | None:
    if default is inspect.Parameter.empty:
        return None
    return repr(default) if isinstance(default, (bool, int, float, str, tuple, type(None))) else "?"


def _of_schemas(torch: Any, operator: str) -> list[list[str | None]] | None:
    packet = getattr(torch.ops.aten, operator, None)
    if packet is None:
        return None
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    arguments = [a for s in schemas for a in s.arguments if not getattr(a, "is_out", False)]
    # Those of one letter are of the compiler's operators for numbers.
    return [[name, "?"] for name in sorted({a.name for a in arguments}) if len(name) > 1]


def parameters_of(torch: Any, owner: str, name: str, value: Any) -> list[list[str | None]] | None:
    """Names and defaults; None where they are not known."""
    of_schemas = None
    if owner in _OPERATORS and not isinstance(value, (type, types.FunctionType)):
        of_schemas = _of_schemas(torch, _OPERATORS[owner].format(name))
    try:
        found = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return of_schemas
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return of_schemas
    written = [[p.name, _text(p.default)] for p in found if not p.name.startswith("_")]
    names = {name for name, _ in written}
    return written + [p for p in of_schemas or [] if p[0] not in names]


def look_up(path: str) -> Any:
    """The object `torch.nn.Linear`; AttributeError or ImportError where it is nothing."""
    owner = importlib.import_module("torch")
    parts = path.split(".")
    for i, part in enumerate(parts[1:], 1):
        if not hasattr(owner, part) and isinstance(owner, types.ModuleType):
            importlib.import_module(".".join(parts[: i + 1]))
        owner = getattr(owner, part)
    return owner


def described(torch: Any, path: str) -> Any:
    owner, _, name = path.rpartition(".")
    value = look_up(path)
    return [kind_of(value), parameters_of(torch, owner, name, value)]


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    output, sys.stdout = sys.stdout, sys.stderr  # modules may print when they are imported
    if arguments:
        importlib.import_module("treadle.run").install()
    torch = importlib.import_module("torch")
    if arguments:
        wanted = sys.stdin.read().split()
    else:
        wanted = []
        for module in modules(torch):
            wanted += [f"{module}.{n}" for n in names_of(importlib.import_module(module), "torch")]
        for owner in CLASSES:
            wanted += [f"{owner}.{n}" for n in names_of(look_up(owner), "torch")]
    found = {}
    for path in sorted(set(wanted)):
        try:
            found[path] = described(torch, path)
        except Exception:  # noqa: BLE001, S112  it is not there
            continue
    json.dump(found, output, indent=0, sort_keys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
