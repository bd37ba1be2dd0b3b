"""A library of operators outside of Treadle: from its YAML to a folder of code.

    files = generate("my_ops.yaml", "d.yaml", name="my_ops", out="gen")

`gen/my_ops/` is a Python package that lacks only its extension module, and a folder of C++ sources
and headers to make that of; `gen/docs/` has a page for each operator. The entries are checked by
schemac, as those of the tree are. CodegenError for what it reports, and for an entry that a library
outside cannot have.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import keyword
from pathlib import Path
from typing import Union

from .diagnostics import CodegenError
from .entries import MODEL, write_model
from .library import outside
from .model.load import load

if importlib.util.find_spec("jinja2") is None:
    raise ImportError(
        "treadle.codegen: expected the package jinja2, which the templates need, got none; install "
        "it with: pip install 'treadle[codegen]'"
    )

from .reference import pages  # noqa: E402  these need jinja2
from .render import Renderer, write_if_changed  # noqa: E402

__all__ = ["CodegenError", "check_name", "generate"]

BANNERS = ("// Generated from ", "# Generated from ")

# Namespaces that are taken, in C++ or in Python.
TAKEN = frozenset("aten autograd hwy prim std treadle torch".split())


def check_name(name: str) -> None:
    """Raises CodegenError where `name` cannot be that of a library: a namespace and a module."""
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise CodegenError(f"expected the name of a library, such as my_ops, got {name!r}")
    if name in TAKEN or name.startswith("_"):
        raise CodegenError(f"expected a name of the library's own, got {name!r}, which is taken")


def generate(
    functions: Union[str, Path],
    derivatives: Union[str, Path, None] = None,
    *,
    name: str,
    out: Union[str, Path],
    shards: int = 1,
) -> list[Path]:
    """Writes everything for the entries in `functions`; the files' paths, sources among them.

    A file whose text has not changed is left alone; one that was made before and is no more made is
    removed. More `shards` spread the operators over more C++ files, to be compiled side by side.
    """
    check_name(name)
    out = Path(out)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    model_file = folder / "opmodel.json"
    write_model(functions, derivatives, name, model_file)
    model = load(model_file)
    renderer = Renderer(model, shards, outside(name, load(MODEL)))
    made = [model_file]
    for path, text in renderer.files():
        write_if_changed(out / path, text)
        made.append(out / path)
    write_if_changed(folder / "py.typed", "")
    for path, text in pages(model, {}):
        write_if_changed(out / "docs" / path, text)
        made.append(out / "docs" / path)
    _remove_stale(folder, set(made))
    return [*made, folder / "py.typed"]


def _remove_stale(folder: Path, made: set[Path]) -> None:
    for path in [*folder.rglob("*.cc"), *folder.rglob("*.h")]:
        if path not in made and path.read_text().startswith(BANNERS):
            path.unlink()
