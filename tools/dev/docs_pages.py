"""Stages what the documentation site is made of: pages in one folder, with links that fit there.

A page that lists others is an index: docs/index.md, and the generated index of the operators. Each
of its `## sections` becomes a page of its own in the site's navigation, above the pages that the
section links to, so that the order of the site is written once, where people read it. A link to
another file of the tree, such as an example, leads to a page that shows the file. Pictures are
copied.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Optional

from ui import ROOT, DevError

LINK = re.compile(r"(?<=\]\()([^()\s]+)(?=\))")
# Text that is no prose: fenced blocks and code between backquotes.
CODE = re.compile(r"^( *)(`{3,}|~{3,})[^\n]*\n.*?^\1\2$|(`+)[^`].*?\3", re.MULTILINE | re.DOTALL)
LANGUAGES = {
    ".py": "python", ".cc": "cpp", ".h": "cpp", ".cu": "cpp", ".c": "c", ".sh": "bash",
    ".yaml": "yaml", ".bzl": "python", ".bazel": "python", ".toml": "toml",
}  # fmt: skip
PICTURES = {".png", ".svg"}
ORPHAN = "---\norphan: true\n---\n\n"


@dataclasses.dataclass
class Page:
    """The text of a page; `base` is the folder of the tree that its links start from."""

    text: str
    base: Optional[Path] = None


class Stage:
    """Pages by their path in the site, and the path of the page that stands for each file."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.pages: dict[str, Page] = {}
        self.of_files: dict[Path, str] = {}
        self.pictures: dict[str, Path] = {}
        self.problems: list[str] = []

    def add(self, path: str, page: Page, file: Optional[Path] = None) -> None:
        """Adds a page at `path`; `file`: what links name where they mean this page."""
        if path in self.pages:
            raise DevError(f"the site has two pages {path}")
        self.pages[path] = page
        if file is not None:
            self.of_files[file.resolve()] = path

    def add_file(self, file: Path, path: str) -> None:
        """Adds a Markdown file as a page."""
        self.add(path, Page(file.read_text(), file.parent), file)

    def link(self) -> None:
        """Turns links to files of the tree into links to pages, which are added where missing."""
        waiting = list(self.pages)
        while waiting:
            path = waiting.pop()
            page = self.pages[path]
            if page.base is not None:
                known = set(self.pages)
                page.text = map_links(page.text, functools.partial(self._linked, path, page.base))
                waiting += set(self.pages) - known

    def _linked(self, path: str, base: Path, target: str) -> str:
        """The target of a link of the page at `path` in the site."""
        name, mark, anchor = target.partition("#")
        if "://" in target or not name:
            return target
        file = (base / name).resolve()
        if file.is_dir():
            file /= "README.md"
        if file not in self.of_files:
            if not file.is_file() or not file.is_relative_to(self.root):
                self.problems.append(f"docs site: {path}: a link leads nowhere: {target}")
                return target
            self._show(file)
        return os.path.relpath(self.of_files[file], os.path.dirname(path) or ".") + mark + anchor

    def _show(self, file: Path) -> None:
        """Adds a page, outside the navigation, for a file of the tree."""
        name = str(file.relative_to(self.root))
        if file.suffix in PICTURES:
            self.pictures[f"files/{name}"] = file
            self.of_files[file] = f"files/{name}"
            return
        text = file.read_text()
        if file.suffix == ".md":
            self.add(f"files/{name}", Page(ORPHAN + text, file.parent), file)
            return
        longest = max(map(len, re.findall(r"`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        language = LANGUAGES.get(file.suffix, "text")
        code = f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
        self.add(f"files/{name}.md", Page(f"{ORPHAN}# {name}\n\n{code}"), file)

    def write(self, folder: Path) -> None:
        """Writes what changed and removes pages that are no more."""
        for path, page in self.pages.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_text() != page.text:
                target.write_text(page.text)
        for path, file in self.pictures.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        for old in folder.rglob("*.md"):
            if str(old.relative_to(folder)) not in self.pages:
                old.unlink()


def map_links(text: str, replaced: Callable[[str], str]) -> str:
    """`text` with the targets of its links replaced; code stays as it is."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts.append(LINK.sub(lambda m: replaced(m[0]), text[end : code.start()]))
        parts.append(code[0])
        end = code.end()
    parts.append(LINK.sub(lambda m: replaced(m[0]), text[end:]))
    return "".join(parts)


def links_of(text: str) -> list[str]:
    """The targets of the links of a page, in its order."""
    found: list[str] = []

    def seen(target: str) -> str:
        found.append(target)
        return target

    map_links(text, seen)
    return found


def sections(text: str) -> Iterator[tuple[str, str]]:
    """(heading, body) of each `## section` that links to pages."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        if any(target.endswith(".md") for target in links_of(body)):
            yield heading.strip(), body.strip("\n")


def slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def toctree(pages: list[str]) -> str:
    """The directive that puts pages into the navigation, below the page that it stands on."""
    if not pages:
        return ""
    names = ["/" + page.removesuffix(".md") for page in pages]
    return "\n".join(["", "```{toctree}", ":hidden:", ":titlesonly:", "", *names, "```", ""])


def add_index(
    stage: Stage, file: Path, path: str, more: Sequence[str] = (), folder: str = ""
) -> None:
    """Adds an index, and in `folder` a page for each of its sections above the pages that it links
    to.

    `more`: pages that follow the sections. A page that several sections link to is the first's.
    """
    text = file.read_text()
    placed = {path, *more}
    children: list[str] = []
    for heading, body in sections(text):
        files = [(file.parent / target.partition("#")[0]).resolve() for target in links_of(body)]
        pages = [stage.of_files[found] for found in files if found in stage.of_files]
        pages = [page for page in dict.fromkeys(pages) if page not in placed]
        placed.update(pages)
        if pages:
            children.append(f"{folder}{slug(heading)}.md")
            page = f"# {heading}\n\n{body}\n{toctree(pages)}"
            stage.add(children[-1], Page(page, file.parent))
    stage.add(path, Page(f"{text.rstrip()}\n{toctree([*children, *more])}", file.parent), file)
