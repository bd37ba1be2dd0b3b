"""Renders every generated file from the operator model.

    python -m codegen.render --model opmodel.json --out-dir OUT --shards 16 [--names add sub ...]
    python -m codegen.render --model opmodel.json --show add

A file is written only if its text changed. `--names` is the list of base names the build has
declared headers for; a difference from the model is an error.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

from . import limits
from .bindings import signatures
from .diagnostics import CodegenError, raise_if_any
from .environment import environment
from .gradients import layer
from .library import TREE, Library
from .model.entry import Model
from .model.load import load
from .shard import Placement, Shard, alone, by_hash, by_kernels, make_shards

# The variables of a shard's template beside the shard.
CONTEXTS: Mapping[str, Callable[[Shard], Mapping[str, Any]]] = {
    "variable_type.cc.j2": layer.context,
    "bindings.cc.j2": signatures.context,
}
KERNELS = "kernels_cpu.cc.j2"
# The other templates of shards show nothing of derivatives.yaml.
OF_DERIVATIVES = ("variable_type.cc.j2",)


def banner(source: str, template: str, command: str) -> str:
    comment = "#" if template.endswith((".pyi.j2", ".py.j2")) else "//"
    return (
        f"{comment} Generated from {source} by codegen/templates/{template}. "
        f"Show it again: {command}\n"
    )


class Renderer:
    def __init__(
        self, model: Model, shards: int, library: Library = TREE, kernel_shards: int | None = None
    ):
        raise_if_any(limits.problems(model, library))
        self.model = model
        self.library = library
        self.env = environment()
        self.env.globals["lib"] = library
        self.env.globals["model"] = model
        self.placement = by_hash(model, shards)
        self.shards = make_shards(model, shards, library, self.placement)
        kernel_shards = kernel_shards or shards
        self.kernel_placement = by_kernels(model, kernel_shards)
        self.kernel_shards = make_shards(model, kernel_shards, library, self.kernel_placement)

    def render(self, template: str, source: str, command: str, **context: Any) -> str:
        text = self.env.get_template(template).render(**context)
        return banner(source, template, command) + text

    def shards_of(self, template: str) -> list[Shard]:
        return self.kernel_shards if template == KERNELS else self.shards

    def placement_of(self, template: str) -> Placement:
        return self.kernel_placement if template == KERNELS else self.placement

    def header(self, name: str) -> str:
        entries = self.model.by_name[name]
        # No line numbers in what is compiled: an edit that moves an entry must not rebuild it.
        # `show` gives them.
        source = f"{name} in {self.model.functions}"
        again = self.library.again.format(name)
        return self.render("op_header.h.j2", source, again, name=name, entries=entries)

    def shard(self, template: str, shard: Shard) -> str:
        source = self.model.functions
        if template in OF_DERIVATIVES and self.model.derivatives is not None:
            source += f" and {self.model.derivatives}"
        context = CONTEXTS[template](shard) if template in CONTEXTS else {}
        return self.render(
            template, source, self.library.again.format("NAME"), shard=shard, **context
        )

    def files(self) -> Iterable[tuple[str, str]]:
        for name in sorted(self.model.by_name):
            yield self.library.header.format(name), self.header(name)
        for template, path in self.library.sharded.items():
            for s in self.shards_of(template):
                yield path.format(s.index), self.shard(template, s)
        again = "./dev build" if self.library is TREE else self.library.again
        for template, path in self.library.whole.items():
            yield path, self.render(template, self.model.functions, again, shards=self.shards)

    def show(self, name: str) -> str:
        """Everything generated for one base name, as if it were alone in its shards."""
        if name not in self.model.by_name:
            near = [n for n in sorted(self.model.by_name) if name in n]
            raise CodegenError(
                f"unknown operator '{name}'"
                + (f"; did you mean {', '.join(near[:8])}?" if near else "")
            )
        only = alone(name, self.model, self.library)
        parts = [f"==== {e.place} ====\n{e.schema}\n" for e in self.model.by_name[name]]
        parts.append(f"==== aten/ops/{name}.h ====\n{self.header(name)}")
        for template, path in self.library.sharded.items():
            place = path.format(self.placement_of(template)[name])
            parts.append(f"==== {place} ====\n{self.shard(template, only)}")
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
        raise CodegenError(
            f"{model.functions}: error: the build declares other operators than the model has: "
            f"not declared: {missing or 'none'}; not in the model: {extra or 'none'}.\n"
            "Each entry must begin a line with `- func: NAME`."
        )


def run(args: argparse.Namespace) -> None:
    model = load(args.model)
    declared = set(args.names or ())
    if args.names_file:
        declared |= set(Path(args.names_file).read_text().split())
    if declared:
        check_names(model, declared)
    renderer = Renderer(model, args.shards, kernel_shards=args.kernel_shards)
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


def main(argv: list[str]) -> int:
    """Exit status: 0, or 1 with what is wrong on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--out-dir")
    parser.add_argument("--shards", type=int, default=16)
    # Kernels take longest to compile.
    parser.add_argument("--kernel-shards", type=int, help="of the kernels (default: as the others)")
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--names-file")
    parser.add_argument("--show", metavar="OP")
    args = parser.parse_args(argv)
    if not args.show and not args.out_dir:
        parser.error("expected --out-dir or --show, got neither")
    try:
        run(args)
    except CodegenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
