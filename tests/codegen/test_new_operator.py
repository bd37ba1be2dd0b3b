"""Adding an operator, as docs/adding-an-operator.md says it: the blocks of the page are put into a
copy of the tree, built, and called from Python with out=, in place and with a gradient. No step may
compile more than a dozen objects again.

The copy begins with what the checkout's builds have made, so that its first build compiles next to
nothing. The disk cache would not do: after an edit of a header it lacks the objects that do not
read it, which were not compiled again. How long each step took, from the edit to a call from
Python, is printed (pytest -s); it is a figure, not a check.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-an-operator.md"
MOST_OBJECTS = 12


def _blocks(language: str) -> list[str]:
    """The fenced blocks of the page in a language, in order, without their indentation."""
    fences = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, name, text in fences if name == language]


class Copy:
    """A copy of the tree and of what was built of it, with an output folder of its own."""

    def __init__(self, folder: Path):
        self.root, self.base = folder / "tree", folder / "out"
        self.log = folder / "executed.json"
        self.environment = {
            k: v
            for k, v in os.environ.items()
            if k not in ("PYTHONPATH", "LD_PRELOAD", "ASAN_OPTIONS")
        }
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        for name in names.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        options = ROOT / ".bazelrc.user"
        text = options.read_text() if options.exists() else ""
        if "TREADLE_PYTHON" not in text:
            text += f"build --repo_env=TREADLE_PYTHON={sys.executable}\n"
        (self.root / ".bazelrc.user").write_text(text)
        info = ["bazel", "info", "output_base"]
        done = subprocess.run(
            info, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=True
        )
        self.base.mkdir()
        # Another test may be building; what is not found whole is built again.
        for part in ("action_cache", "execroot", "external"):
            source = Path(done.stdout.strip()) / part
            subprocess.run(["cp", "-a", source, self.base], check=False, capture_output=True)

    def bazel(self, *arguments: str) -> None:
        done = subprocess.run(
            ["bazel", f"--output_base={self.base}", *arguments],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]

    def build(self) -> list[str]:
        """Builds the package; the objects that were not up to date."""
        self.bazel(
            "build",
            f"--execution_log_json_file={self.log}",
            "//python_bindings:package",
            "//codegen/schemac",
        )
        lay_out = (
            "import sys, pathlib; sys.path.insert(0, 'tools/dev'); import bazel; "
            "bazel.lay_out(pathlib.Path('bazel-bin').resolve(), pathlib.Path('build/python'))"
        )
        done = subprocess.run(
            [sys.executable, "-c", lay_out],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [
            spawn["listedOutputs"][0]
            for spawn in _json_values(self.log.read_text())
            if spawn.get("mnemonic") == "CppCompile"
        ]

    def python(self, *arguments: str) -> str:
        environment = {**self.environment, "PYTHONPATH": str(self.root / "build" / "python")}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    def insert(self, file: str, text: str, where: str) -> None:
        """Puts an entry before the first entry after the heading or entry `where`, which is amid
        the file.
        """
        path = self.root / file
        before, heading, after = path.read_text().partition(where)
        assert heading, f"{file} has no {where!r}"
        at = after.index("\n- ") + 1
        path.write_text(before + heading + after[:at] + text + "\n" + after[at:])


def _json_values(text: str) -> Iterator[dict]:
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        while at < len(text) and text[at].isspace():
            at += 1


def _timed_build(copy: Copy, what: str, call: str) -> None:
    start = time.monotonic()
    objects = copy.build()
    copy.python("-c", call)
    seconds = time.monotonic() - start
    print(f"\n{what}: {len(objects)} objects, {seconds:.1f} s from the edit to the call")
    assert 0 < len(objects) <= MOST_OBJECTS, "\n".join(objects)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    copy = Copy(tmp_path_factory.mktemp("new_operator"))
    try:
        copy.build()
        yield copy
    finally:
        copy.bazel("shutdown")
        # Bazel makes its outputs read-only.
        subprocess.run(["chmod", "-R", "u+w", str(copy.base)], check=False)
        shutil.rmtree(copy.base, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.builds
def test_the_page_from_top_to_bottom(copy: Copy) -> None:
    yaml = _blocks("yaml")
    entries = [block for block in yaml if block.startswith("- func:")]
    derivatives = [block for block in yaml if "- name:" in block]
    (kernel,), (samples,), (session,) = _blocks("cpp"), _blocks("python"), _blocks("")
    assert len(entries) == len(derivatives) == 2 and ">>>" in session

    # Nothing changed: nothing is compiled.
    assert copy.build() == []

    # An operator in one entry.
    copy.insert("native_functions.yaml", entries[0], "# ---- pointwise ----")
    _timed_build(
        copy, "softsign", "import treadle; assert treadle.softsign(treadle.ones(1)).item() == 0.5"
    )
    (copy.root / "session.txt").write_text(session)
    copy.python("-m", "doctest", "session.txt")
    copy.python(
        "-c",
        """
import treadle
from treadle.autograd import gradcheck, gradgradcheck
x, out = treadle.tensor([-1.0, 3.0]), treadle.empty(0)
assert treadle.softsign(x, out=out) is out and out.tolist() == [-0.5, 0.75]
assert x.softsign_() is x and x.tolist() == [-0.5, 0.75]
assert treadle.softsign(treadle.tensor([1, 3])).tolist() == [0.5, 0.75]
assert treadle.softsign(treadle.ones(2, 3, device="meta")).shape == (2, 3)
y = treadle.randn(3, 4, dtype=treadle.float64, requires_grad=True)
assert gradcheck(treadle.softsign, (y,)) and gradgradcheck(treadle.softsign, (y,))
""",
    )

    # A formula by hand in place of the derived one.
    copy.insert("derivatives.yaml", derivatives[0], "\n- name: abs(")
    _timed_build(
        copy,
        "its formula",
        """
import treadle
from treadle.autograd import gradcheck, gradgradcheck
y = treadle.randn(3, 4, dtype=treadle.float64, requires_grad=True)
assert gradcheck(treadle.softsign, (y,)) and gradgradcheck(treadle.softsign, (y,))
""",
    )

    # An operator with a kernel.
    (copy.root / "aten" / "ops" / "joining" / "cpu" / "reverse_rows.cc").write_text(kernel)
    copy.insert("native_functions.yaml", entries[1], "# ---- joining ----")
    copy.insert("derivatives.yaml", derivatives[1], "\n- name: sum(")
    families = copy.root / "python_bindings" / "treadle_testing" / "families"
    (families / "reverse_rows.py").write_text(
        '"""Samples of reverse_rows."""\n\nfrom ..sample import Sample, samples\n\n\n' + samples
    )
    _timed_build(
        copy,
        "reverse_rows",
        "import treadle; assert treadle.reverse_rows(treadle.eye(2)).tolist() == [[0, 1], [1, 0]]",
    )
    copy.python(
        "-c",
        """
import treadle
from treadle.autograd import gradcheck, gradgradcheck
x, out = treadle.arange(6).reshape(3, 2), treadle.empty(0, dtype=treadle.int64)
wanted = [[4, 5], [2, 3], [0, 1]]
assert treadle.reverse_rows(x, out=out) is out and out.tolist() == wanted
assert x.reverse_rows().tolist() == wanted
y = treadle.randn(3, 4, dtype=treadle.float64, requires_grad=True)
assert gradcheck(treadle.reverse_rows, (y,)) and gradgradcheck(treadle.reverse_rows, (y,))
try:
    treadle.reverse_rows(treadle.ones(1, 2, 3))
    raise SystemExit("no exception")
except RuntimeError as error:
    assert str(error) == "reverse_rows: expected self.dim() == 2, got self.dim() = 3", error
""",
    )

    # An edit of the kernel alone.
    path = copy.root / "aten" / "ops" / "joining" / "cpu" / "reverse_rows.cc"
    path.write_text(path.read_text().replace("rows - 1 - i", "rows - i - 1"))
    start = time.monotonic()
    assert len(copy.build()) == 1
    print(f"the kernel file alone: {time.monotonic() - start:.1f} s")

    # The tests of both exist: those that run over every operator.
    report = copy.python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "softsign or reverse_rows",
        "tests/python/operators/test_operators.py",
        "tests/python/autograd/test_gradients.py",
    )
    assert re.search(r"\d{2,} passed", report), report
