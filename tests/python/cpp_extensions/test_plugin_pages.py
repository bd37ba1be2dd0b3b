"""The pages about plug-ins are true: the examples compile, the tables leave nothing out, and
the guide does what it says when it is followed word by word.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import plugins
from environments import fresh, testing_wheel, wheel  # noqa: F401  (fixtures)

DOCS = plugins.ROOT / "docs"
HEADER = plugins.ROOT / "plugin" / "treadle" / "plugin.h"


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


# ---- plugin-interface.md -------------------------------------------------------------------------


@pytest.mark.slow
def test_examples_in_cpp_compile(tmp_path: Path) -> None:
    """The first is a plug-in; the others are put into one file, for none needs what is before
    it."""
    whole, *parts = fenced((DOCS / "plugin-interface.md").read_text(), "cpp")
    includes = {line for part in parts for line in part.splitlines() if line.startswith("#")}
    text = "\n".join(["#include <atomic>", "#include <treadle/plugin.hpp>", *sorted(includes)])
    text += "\nusing namespace treadle::plugin;\n"
    for i, part in enumerate(parts):
        lines = [line for line in part.splitlines() if not line.startswith("#")]
        text += f"namespace example_{i} {{\n" + "\n".join(lines) + "\n}\n"
    plugins.build(tmp_path, "parts", text, suffix=".cc", flags=["-Wno-unused-function"])
    path = plugins.build(tmp_path, "demo", whole, suffix=".cc")
    program = """
        import sys, treadle
        treadle.load_backend(sys.argv[1])
        print(treadle.ops.demo.doubled(treadle.ones(2)).tolist())
    """
    assert plugins.run_program(program, path) == "[2.0, 2.0]\n"


def test_example_in_c_runs(tmp_path: Path) -> None:
    (text,) = fenced((DOCS / "plugin-interface.md").read_text(), "c")
    path = plugins.build(tmp_path, "answer", text)
    program = """
        import sys, treadle
        treadle.load_backend(sys.argv[1])
        print(treadle.ops.demo.answer())
    """
    assert plugins.run_program(program, path) == "tensor(42)\n"


def members(structure: str) -> list[str]:
    """The names of a structure's members in plugin.h."""
    header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    (body,) = re.findall(
        rf"typedef struct {structure} {{(.*?)^}} {structure};", header, re.M | re.S
    )
    names = []
    for declaration in body.split(";"):
        function = re.search(r"\(\*(\w+)\)", declaration)
        plain = re.search(r"(\w+)\s*$", declaration)
        if function or plain:
            names.append((function or plain)[1])
    return names


@pytest.mark.parametrize("structure", ["treadle_api", "treadle_backend", "treadle_plugin"])
def test_the_page_names_every_member(structure: str) -> None:
    page = (DOCS / "plugin-interface.md").read_text()
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", page))))
    assert len(members(structure)) > 4
    left_out = set(members(structure)) - named - {"reserved", "interface_version"}
    assert not left_out


def test_the_page_of_functions_names_every_one() -> None:
    table = (plugins.ROOT / "aten" / "scalar" / "functions.yaml").read_text()
    functions = set(re.findall(r"^- function: (\w+)", table, re.MULTILINE))
    page = (DOCS / "functions-of-expressions.md").read_text()
    assert functions <= set(re.findall(r"`(\w+)(?:\([^`]*\))?`", page))
    assert len(functions) > 100


# ---- add-a-backend.md ----------------------------------------------------------------------------


class Reader:
    """Does what a page says, step by step, in an empty folder: writes the files, inserts the
    pieces, runs the commands of the `sh` blocks and compares what they print.
    """

    def __init__(self, page: Path, folder: Path, environment: dict[str, str]) -> None:
        self.text = page.read_text()
        self.folder = folder
        self.environment = environment
        self.variables = ""  # assignments of earlier commands

    def follow(self, until: str = "") -> list[str]:
        """The commands that were run, up to a heading."""
        text = self.text.partition(f"\n{until}\n")[0] if until else self.text
        done = []
        for before, language, body in re.findall(
            r"([^\n]*)\n\n```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
        ):
            name = re.search(r"`([\w./]+)`(?:, after `([^`]+)`)?:$", before)
            if language == "sh":
                done += [self.run(command, shown) for command, shown in self.commands(body)]
            elif name and name[2]:
                self.insert(name[1], name[2], body)
            elif name:
                (self.folder / name[1]).write_text(body)
        return done

    @staticmethod
    def commands(body: str) -> list[tuple[str, str]]:
        parts = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
        return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]

    def insert(self, name: str, marker: str, body: str) -> None:
        file = self.folder / name
        text = file.read_text()
        (line,) = [line for line in text.splitlines() if line.strip() == marker]
        file.write_text(text.replace(line + "\n", line + "\n" + body))

    def run(self, command: str, shown: str) -> str:
        if re.match(r"[A-Z]+=", command):
            self.variables += command + "; "
            return command
        done = subprocess.run(
            ["bash", "-c", self.variables + command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if shown:
            assert done.stdout == shown, command
        return command


def with_python(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """An environment in which `python` is this one, with the package that is under test."""
    binaries = folder / "bin"
    binaries.mkdir()
    script = binaries / "python"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    script.chmod(0o755)
    package = Path(plugins.treadle.__file__).parents[1]
    return {
        **environment,
        "PATH": f"{binaries}:{environment['PATH']}",
        "PYTHONPATH": str(package),
    }


@pytest.mark.slow
def test_the_guide_up_to_the_wheel(tmp_path: Path) -> None:
    """With the package under test; every program prints what the page shows."""
    (tmp_path / "work").mkdir()
    environment = with_python(tmp_path, dict(os.environ))
    reader = Reader(DOCS / "add-a-backend.md", tmp_path / "work", environment)
    done = reader.follow(until="## 4. Tests, and when something is wrong")
    assert done.count("python try.py") == 2


@pytest.mark.slow
def test_the_mistake_that_the_guide_shows(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    environment = with_python(tmp_path, dict(os.environ))
    page = DOCS / "add-a-backend.md"
    reader = Reader(page, tmp_path / "work", environment)
    reader.follow(until="## 2. Generated kernels")
    file = tmp_path / "work" / "slate.cc"
    wrong = "void mm(const Tensor&, int64_t, const Tensor&) {}\n\nvoid start() {"
    registration = '  register_kernel<&mm>("mm(Tensor self, Tensor mat2) -> Tensor", device);\n'
    text = file.read_text().replace("void start() {", wrong)
    file.write_text(text.replace("  (void)device;\n", registration))
    compile_it = next(c for b in fenced(reader.text, "sh") for c in b.splitlines() if "g++" in c)
    reader.run(compile_it[2:], "")
    done = subprocess.run(
        ["python", "try.py"], cwd=reader.folder, env=environment, capture_output=True, text=True
    )
    (shown,) = fenced(reader.text, "text")
    assert shown in done.stderr.replace(str(reader.folder), "/home/you")


@pytest.mark.slow
@pytest.mark.builds
def test_the_guide_with_the_page_and_the_wheel(
    wheel: Path,  # noqa: F811
    testing_wheel: Path,  # noqa: F811
    tmp_path: Path,  # noqa: F811
) -> None:
    """In an empty environment that has what the page asks for and nothing else."""
    (tmp_path / "work").mkdir()
    environment = fresh(tmp_path, str(wheel), str(testing_wheel), "setuptools", "wheel")
    reader = Reader(DOCS / "add-a-backend.md", tmp_path / "work", environment)
    done = reader.follow()
    assert "pip install --no-build-isolation ." in done
    assert any("treadle.ones(2, device='slate')" in command for command in done)
