"""The Python that the build is for: the one that the metadata, the pages and `./dev pythons` name,
and always the one that is there now.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re

from source_tree import ROOT


def supported() -> tuple[str, ...]:
    """The versions for which `./dev pythons` builds the wheel and runs a program."""
    tree = ast.parse((ROOT / "tools" / "dev" / "pythons.py").read_text())
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SUPPORTED"
    ]
    return ast.literal_eval(value)


def test_no_older_python_is_promised_than_is_tried() -> None:
    oldest, newest = supported()[0], supported()[-1]
    metadata = (ROOT / "python_bindings" / "METADATA.in").read_text()
    assert f"\nRequires-Python: >={oldest}\n" in metadata
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert f"`python3` on the PATH is taken, {oldest} or newer" in page
    assert f"CPython {oldest} is the oldest that the build takes" in page
    assert f"wheel for each of {oldest} to {newest}" in re.sub(r"\s+", " ", page)


def test_names_that_newer_pythons_lack_are_behind_a_test_of_the_version() -> None:
    """`_Py_IsFinalizing` went in 3.13, when `Py_IsFinalizing` came."""
    for path in (ROOT / "python_bindings" / "csrc").rglob("*.[ch]*"):
        text = path.read_text()
        if "_IsFinalizing" in text:
            assert re.search(
                r"#if PY_VERSION_HEX >= 0x030D0000\n[^#]*[^_]Py_IsFinalizing"
                r"[^#]*#else\n[^#]*_Py_IsFinalizing[^#]*#endif",
                text,
            ), path


def test_bazel_looks_again_when_another_python_takes_the_place_of_one() -> None:
    """The virtual environment of another Python has the same path, so the path is not enough."""
    found = 0
    for path in (ROOT / "tools" / "bazel").glob("*.bzl"):
        for names in re.findall(r"environ = \[(.*?)\]", path.read_text()):
            if '"TREADLE_PYTHON"' in names:
                assert '"TREADLE_PYTHON_IS"' in names, path
                found += 1
    assert found == 2
    options = (ROOT / "tools" / "dev" / "environment.py").read_text()
    assert re.search(r"TREADLE_PYTHON_IS=\{.*treadle\.stamp.*\}", options)
    assert re.search(r"digest = .*sys\.version", options), "the stamp tells Pythons apart"
