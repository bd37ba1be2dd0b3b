"""Finds links of built HTML pages that lead nowhere: to no file, or to no heading of one.

Sphinx checks the links that pages write; this checks what a reader's browser is given, those of the
navigation included. Links to other places of the network are not followed.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

HREF = re.compile(r"<(?:a|link)\b[^>]*?\bhref=\"([^\"]*)\"|\bsrc=\"([^\"]*)\"")
ID = re.compile(r"\bid=\"([^\"]*)\"")
ELSEWHERE = re.compile(r"[a-z]+:|//", re.IGNORECASE)


def broken(site: Path) -> Iterator[str]:
    """A line for each link that leads nowhere."""
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    texts = {str(path): path.read_text() for path in pages}
    anchors = {path: set(ID.findall(text)) for path, text in texts.items()}
    existing: dict[str, bool] = {}
    for path, text in texts.items():
        folder = os.path.dirname(path)
        for target in sorted({a or b for a, b in HREF.findall(text)}):
            if ELSEWHERE.match(target):
                continue
            name, _, anchor = unquote(target).partition("#")
            name = name.partition("?")[0]
            file = os.path.normpath(os.path.join(folder, name)) if name else path
            if file not in anchors and f"{file}/index.html" in anchors:
                file = f"{file}/index.html"
            if file not in existing:
                existing[file] = os.path.isfile(file)
            wanted = anchor and anchor not in anchors.get(file, {anchor})
            if not existing[file] or wanted:
                yield f"{os.path.relpath(path, site)}: a link leads nowhere: {target}"
