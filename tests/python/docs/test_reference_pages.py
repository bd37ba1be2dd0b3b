"""The reference pages, the table and the count: every operator has its page, and what a page shows
is what the library does.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import treadle
from source_tree import ROOT
from treadle.__main__ import main
from treadle._introspection import operator_table
from treadle_testing.cases import has_samples
from treadle_testing.catalogue import Operator, by_id, operators
from treadle_testing.examples import example_of, public_operators

DTYPES = tuple(operator_table.DTYPES)


@pytest.mark.parametrize("op", public_operators(), ids=repr)
def test_example_prints_what_the_page_shows(op: Operator) -> None:
    text = example_of(op)
    assert text.startswith(">>> ") and op.name in text
    test = doctest.DocTestParser().get_doctest(text, {"treadle": treadle}, op.id, None, 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=printed.append)
    assert not runner.failures, "".join(printed)


def test_pages(tmp_path: Path) -> None:
    """A page for each name, with the signatures, the contract, the dtypes and the example."""
    examples = {"add.Tensor": example_of(by_id()["add.Tensor"])}
    (tmp_path / "examples.json").write_text(json.dumps(examples))
    (tmp_path / "table.md").write_text(operator_table.as_markdown())
    command = [
        sys.executable, "-m", "codegen.reference",
        "--model", str(Path(treadle.__file__).parent / "opmodel.json"),
        "--examples", str(tmp_path / "examples.json"),
        "--table", str(tmp_path / "table.md"),
        "--out-dir", str(tmp_path / "pages"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path.stem: path.read_text() for path in (tmp_path / "pages/operators").iterdir()}
    assert set(pages) == {o.name for o in operators() if o.public}
    add = pages["add"]
    for part in (
        "treadle.add(input, other, *, alpha=1, out=None) -> Tensor",
        "Tensor.add_(other, *, alpha=1) -> Tensor",
        "Tensor treadle::aten::add(const Tensor& self, const Tensor& other, "
        "const Scalar& alpha = Scalar(1))",
        "The shapes of `self`, `other` broadcast.",
        "**Dtypes**: bool, uint8",
        "self: grad",
        "functional, inplace, out",
        examples["add.Tensor"],
    ):
        assert part in add, part
    assert "`stride` is above `0`" in pages["conv2d"]
    index = (tmp_path / "pages/index.md").read_text()
    assert all(f"(operators/{name}.md): " in index for name in pages)


# ---- the table -----------------------------------------------------------------------------------


def test_table_is_what_the_entries_declare(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--table", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["dtypes"] == list(DTYPES)
    rows = {row["name"]: row["devices"] for row in table["operators"]}
    assert set(rows) == {o.id for o in operators() if o.public}
    for op in (by_id()[name] for name in rows):
        assert tuple(rows[op.id]["cpu"]) == tuple(d for d in DTYPES if d in op.dtypes), op.id
        assert ("meta" in rows[op.id]) == (op.kind != "returns"), op.id


@pytest.mark.parametrize(
    "op", [o for o in operators() if o.kind in ("kernel", "returns", "reduce")], ids=repr
)
def test_declared_dtypes_have_kernels(op: Operator) -> None:
    """A dtype of the row has a kernel for the CPU, and no kernel is there that the row leaves out.

    A reduction that promotes has kernels for what it promotes to.
    """
    name = f"{op.json['namespace']}::{op.id}"
    cells = {
        c["dtype"]
        for c in treadle._C._describe_operator(name)["cells"]
        if c["device"] == "cpu" and c["layout"] == "strided"
    }
    if op.kind == "reduce":
        assert cells <= set(op.dtypes) | {"int64"}
    else:
        assert cells == set(op.dtypes)


def test_table_as_text_and_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["ops"])
    text = capsys.readouterr().out.splitlines()
    main(["ops", "--table", "--markdown"])
    markdown = capsys.readouterr().out.splitlines()
    assert text[0].split() == list(operator_table.DTYPES.values())
    assert len(markdown) == len(text) + 1
    row = next(line for line in text if line.startswith("bitwise_and.Tensor "))
    assert row.split()[1:3] == ["cpu,", "meta"]
    cells = dict(zip(DTYPES, row.split()[3:]))
    assert (cells["bool"], cells["int64"], cells["float32"]) == ("yes", "yes", ".")


def test_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_SOURCE", str(ROOT))
    main(["ops", "--count"])
    lines = capsys.readouterr().out.splitlines()
    total = int(lines[0].split()[0])
    assert total == len({o.name.removesuffix("_") for o in operators() if o.public})
    assert total >= 400
    # Every one has all of it.
    assert [int(line.split()[-1].rstrip(";")) for line in lines[1:]] == [total] * 4, lines


@pytest.mark.parametrize("package", ["scipy", "treadle_testing"])
def test_count_without_what_samples_are_written_with(package: str) -> None:
    program = f"""
import sys
sys.modules["{package}"] = None
from treadle.__main__ import main
main(["ops", "--count"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "samples and references need the package treadle-testing[references]" in done.stdout


# ---- docstrings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [o for o in operators() if o.public and has_samples(o)], ids=repr)
def test_docstring_has_signature_and_doc(op: Operator) -> None:
    doc = inspect.getdoc(op.function) or ""
    assert f"{op.name}(" in doc and " -> " in doc
    first = " ".join(op.json["doc"].split())
    assert first in " ".join(doc.split()), "the entry's doc is in the docstring"


def test_help_of_a_function() -> None:
    text = treadle.add.__doc__
    assert "add(input, other, *, alpha=1, out=None) -> Tensor" in text
    assert str(inspect.signature(treadle.add)) == "(input, other, *, alpha=1, out=None)"
