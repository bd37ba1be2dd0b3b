"""Renders every generated file from the operator model.

    python -m codegen.render --model opmodel.json --out-dir OUT --shards 16 [--names add sub ...]
    python -m codegen.render --model opmodel.json --show add

A file is written only if its text changed. Operators are spread over shards by a stable hash of
their base name, so a new operator changes one shard of each kind. `--names` is the list of base
names the build has declared headers for; a difference from the model is an error.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

import jinja2

from . import autograd_filters, checks, cpp, python_filters
from . import model as operator_model
from .library import TREE, Library
from .model import Entry, Model

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Shard:
    """The operators of one shard: base names in order, each with all its overloads."""

    index: int
    count: int
    groups: tuple[tuple[str, tuple[Entry, ...]], ...]
    model: Model
    library: Library

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(e for _, group in self.groups for e in group)


def shard_of(name: str, shards: int) -> int:
    # In-place entries written by hand (copy_) stay with their base (copy), where Python binds them
    # together.
    return zlib.crc32(name.rstrip("_").encode()) % shards


def make_shards(model: Model, shards: int, library: Library) -> list[Shard]:
    groups: list[list[tuple[str, tuple[Entry, ...]]]] = [[] for _ in range(shards)]
    for name, entries in sorted(model.by_name.items()):
        groups[shard_of(name, shards)].append((name, entries))
    return [Shard(i, shards, tuple(g), model, library) for i, g in enumerate(groups)]


def c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["c_string"] = c_string
    env.filters["seen"] = autograd_filters.seen
    for name, value in (vars(cpp) | vars(checks)).items():
        if callable(value) and not name.startswith("_"):
            env.filters[name] = value
    env.tests["has_cpu_kernels"] = cpp.has_cpu_kernels
    return env


def banner(source: str, template: str, command: str, comment: str = "//") -> str:
    return (
        f"{comment} Generated from {source} by codegen/templates/{template}. "
        f"Show it again: {command}\n"
    )


class Renderer:
    def __init__(self, model: Model, shards: int, library: Library = TREE):
        self.model = model
        self.library = library
        self.env = environment()
        self.env.globals["python"] = python_filters
        self.env.globals["lib"] = library
        self.env.globals["all_dtypes"] = cpp.all_dtypes
        self.shards = make_shards(model, shards, library)
        self.extra: Mapping[str, Callable[[Shard], Mapping[str, Any]]] = {
            "variable_type.cc.j2": autograd_filters.context,
            "bindings.cc.j2": python_filters.context,
        }

    def render(self, template: str, source: str, command: str, **context: Any) -> str:
        comment = "#" if template.endswith((".pyi.j2", ".py.j2")) else "//"
        text = self.env.get_template(template).render(model=self.model, **context)
        return banner(source, template, command, comment) + text

    def header(self, name: str) -> str:
        entries = self.model.by_name[name]
        # No line numbers in what is compiled: an edit that moves an entry must not rebuild it.
        # `show` gives them.
        source = f"{name} in {self.model.functions}"
        return self.render(
            "op_header.h.j2",
            source,
            self.library.again.format(name),
            name=name,
            entries=entries,
        )

    def shard(self, template: str, shard: Shard) -> str:
        extra = self.extra.get(template, lambda _: {})(shard)
        source = (
            f"{self.model.functions} and {self.model.derivatives}"
            if "variable" in template
            else self.model.functions
        )
        again = self.library.again.format("NAME")
        return self.render(template, source, again, shard=shard, **extra)

    def files(self) -> Iterable[tuple[str, str]]:
        for name in sorted(self.model.by_name):
            yield self.library.header.format(name), self.header(name)
        for template, path in self.library.sharded.items():
            for s in self.shards:
                yield path.format(s.index), self.shard(template, s)
        again = "./dev build" if self.library is TREE else self.library.again
        for template, path in self.library.whole.items():
            yield path, self.render(template, self.model.functions, again, shards=self.shards)

    def show(self, name: str) -> str:
        """Everything generated for one base name, as if it were alone in its shards."""
        if name not in self.model.by_name:
            near = [n for n in sorted(self.model.by_name) if name in n]
            raise SystemExit(
                f"unknown operator '{name}'"
                + (f"; did you mean {', '.join(near[:8])}?" if near else "")
            )
        alone = Shard(0, 1, ((name, self.model.by_name[name]),), self.model, self.library)
        parts = [f"==== {e.file}:{e.line} ====\n{e.schema}\n" for e in self.model.by_name[name]]
        parts.append(f"==== aten/ops/{name}.h ====\n{self.header(name)}")
        for template, path in self.library.sharded.items():
            place = path.format(shard_of(name, len(self.shards)))
            parts.append(f"==== {place} ====\n{self.shard(template, alone)}")
        return "\n".join(parts)


def write_if_changed(path: Path, text: str) -> bool:
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


def check_names(model: Model, declared: set[str]) -> None:
    have = set(model.by_name)
    if have != declared:
        missing, extra = sorted(have - declared), sorted(declared - have)
        raise SystemExit(
            f"{model.functions}: error: the build declares other operators than the model has: "
            f"not declared: {missing or 'none'}; not in the model: {extra or 'none'}.\n"
            "Each entry must begin a line with `- func: NAME`."
        )


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--out-dir")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--names-file")
    parser.add_argument("--show", metavar="OP")
    args = parser.parse_args(argv)

    model = operator_model.load(args.model)
    declared = set(args.names or ()) | (
        set(Path(args.names_file).read_text().split()) if args.names_file else set()
    )
    if declared:
        check_names(model, declared)
    renderer = Renderer(model, args.shards)
    if args.show:
        sys.stdout.write(renderer.show(args.show))
        return
    out = Path(args.out_dir)
    everything = []
    for path, text in renderer.files():
        write_if_changed(out / path, text)
        everything.append(f"==== {path} ====\n{text}")
    write_if_changed(out / "everything.txt", "\n".join(everything))
    write_if_changed(out / "treadle/opmodel.json", Path(args.model).read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
