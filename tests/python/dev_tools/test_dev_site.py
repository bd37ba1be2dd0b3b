"""The documentation site: its navigation from the indexes, its links, what finds broken ones."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from source_tree import ROOT
from tool_modules import importing


@pytest.fixture
def dev() -> Iterator[SimpleNamespace]:
    """Parts of ./dev."""
    with importing("dev") as load:
        yield SimpleNamespace(
            docs=load("docs"), links=load("docs_links"), pages=load("docs_pages"), ui=load("ui")
        )


INDEX = """# Documentation

What it is.

## Use it

* [First](first.md): to begin with; see [the program](../programs/a.py).
* [Second](second.md#part): more.

## Nothing to read

Words.
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree with pages."""
    for name, text in {
        "docs/index.md": INDEX,
        "docs/first.md": "# First\n\n[on](second.md#part), `[no](link.md)`\n\n"
        "```\n[no](link.md)\n```\n",
        "docs/second.md": "# Second\n\n## Part\n\n[the folder](../programs)\n",
        "programs/a.py": 'print("`")\n',
        "programs/README.md": "# Programs\n\n[back](../docs/first.md)\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _staged(dev: SimpleNamespace, tree: Path) -> SimpleNamespace:
    stage = dev.pages.Stage(tree)
    stage.add_file(tree / "docs/first.md", "first.md")
    stage.add_file(tree / "docs/second.md", "second.md")
    dev.pages.add_index(stage, tree / "docs/index.md", "index.md", ["more.md"])
    stage.link()
    return stage


def test_sections_of_an_index_are_pages_above_those_they_list(
    dev: SimpleNamespace, tree: Path
) -> None:
    pages = {path: page.text for path, page in _staged(dev, tree).pages.items()}
    assert set(pages) == {
        "index.md", "use-it.md", "first.md", "second.md",
        "files/programs/a.py.md", "files/programs/README.md",
    }  # fmt: skip
    assert "\n/use-it\n/more\n```" in pages["index.md"]
    assert (
        pages["use-it.md"].startswith("# Use it\n") and "\n/first\n/second\n" in pages["use-it.md"]
    )


def test_links_lead_to_pages_of_the_site(dev: SimpleNamespace, tree: Path) -> None:
    pages = {path: page.text for path, page in _staged(dev, tree).pages.items()}
    assert "[on](second.md#part)" in pages["first.md"]
    assert pages["first.md"].count("[no](link.md)") == 2  # code
    assert "[the program](files/programs/a.py.md)" in pages["use-it.md"]
    assert "[the folder](files/programs/README.md)" in pages["second.md"]
    assert "[back](../../first.md)" in pages["files/programs/README.md"]
    assert '```python\nprint("`")\n```' in pages["files/programs/a.py.md"]


def test_pictures_are_copied(dev: SimpleNamespace, tree: Path, tmp_path: Path) -> None:
    (tree / "docs/second.md").write_text("# Second\n\n![a picture](pictures/x.png)\n")
    (tree / "docs/pictures").mkdir()
    (tree / "docs/pictures/x.png").write_bytes(b"\x89PNG\xff")
    stage = _staged(dev, tree)
    assert stage.pages["second.md"].text.endswith("![a picture](files/docs/pictures/x.png)\n")
    stage.write(tmp_path / "source")
    copied = tmp_path / "source" / "files/docs/pictures/x.png"
    assert copied.read_bytes() == b"\x89PNG\xff"
    assert not stage.problems


@pytest.mark.parametrize("link", ["gone.md", "../gone.py", "../../outside.md"])
def test_a_link_to_nothing_is_an_error(dev: SimpleNamespace, tree: Path, link: str) -> None:
    (tree / "docs/second.md").write_text(f"# Second\n\n[x]({link})\n")
    problems = _staged(dev, tree).problems
    assert problems == [f"docs site: second.md: a link leads nowhere: {link}"]


def test_pages_that_are_no_more_are_removed(
    dev: SimpleNamespace, tree: Path, tmp_path: Path
) -> None:
    target = tmp_path / "source"
    _staged(dev, tree).write(target)
    (target / "old.md").write_text("# Old\n")
    written = (target / "first.md").stat().st_mtime_ns
    _staged(dev, tree).write(target)
    assert not (target / "old.md").exists()
    assert (target / "first.md").stat().st_mtime_ns == written


def test_broken_links_of_built_pages(dev: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "index.html").write_text(
        '<a class="x" href="part/page.html#here">1</a> <a href="part/page.html#gone">2</a>'
        '<a href="#top" id="top">3</a> <a href="https://a.org/x">4</a> <a href="no.html">5</a>'
        '<img src="picture.png">'
    )
    (tmp_path / "part/page.html").write_text(
        '<h1 id="here">x</h1> <a href="../index.html?q=1#top">1</a> <a href="../part/">2</a>'
    )
    assert sorted(dev.links.broken(tmp_path)) == [
        "index.html: a link leads nowhere: no.html",
        "index.html: a link leads nowhere: part/page.html#gone",
        "index.html: a link leads nowhere: picture.png",
        "part/page.html: a link leads nowhere: ../part/",
    ]


def test_every_page_is_in_the_index(dev: SimpleNamespace) -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    linked = {target.partition("#")[0] for target in dev.pages.links_of(index)}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= linked
    assert len(list(dev.pages.sections(index))) > 1


def test_modules_stand_below_the_nearest_module_around_them(dev: SimpleNamespace) -> None:
    pages = [
        "python.md",
        "python/treadle.md",
        "python/treadle.nn.md",
        "python/treadle.nn.utils.rnn.md",
    ]
    above = {page: dev.docs.above(page, pages) for page in pages}
    assert above == {
        "python.md": "",
        "python/treadle.md": "python.md",
        "python/treadle.nn.md": "python.md",
        "python/treadle.nn.utils.rnn.md": "python/treadle.nn.md",
    }
