"""The examples in the pages of the root and of docs/ run and print what they say.

A block that begins with >>> is run as a session; a block marked `python` is run as a program. The
blocks of a page share their names. docs/adding-an-operator.md is run by
tests/codegen/test_new_operator.py, which builds what it adds, docs/backends.md by test_backends.py,
docs/operators-from-outside.md by test_operator_pages.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_examples import run_examples
from source_tree import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BUILT_ELSEWHERE = {"adding-an-operator.md", "backends.md", "operators-from-outside.md"}


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name not in BUILT_ELSEWHERE], ids=lambda p: p.name
)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_named_files_exist() -> None:
    """A path in backquotes that looks like one of the tree is one. The design also names what is to
    come.
    """
    for page in PAGES:
        if page.name == "design.md":
            continue
        for name in re.findall(
            r"`([\w./-]+/[\w.-]+\.(?:py|cc|h|yaml|md|j2|bzl))`", page.read_text()
        ):
            if page.name in BUILT_ELSEWHERE and name == "aten/ops/joining/cpu/reverse_rows.cc":
                continue
            assert (ROOT / name).exists() or list(ROOT.glob(f"*/{name}")), f"{page.name}: {name}"
