"""./dev docs: the reference pages in build/docs, and the documentation site in build/site.

The examples on the reference pages are made from the tests' samples and run by the package just
built. The site has docs/*.md, these pages and the Python interface; Sphinx builds it with search. A
warning of Sphinx, such as a page that no index lists, is an error, and so is a link that leads
nowhere.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection
from pathlib import Path

import docs_links
import docs_pages
import environment
from ui import ROOT, DevError, merged, run, step

FOLDER = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
WORK = ROOT / "build" / "docs-parts"
# Pages at the root of the tree that the site has, too.
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md")


def build(package: Path, variables: dict[str, str]) -> list[str]:
    """Makes the pages and the site with a built package; the problems that were found.

    `variables`: the environment in which the package runs.
    """
    environment.checkers()
    with step("Reference pages"):
        reference(package, variables)
    with step("Documentation site"):
        staged = stage(FOLDER, interface(variables))
        staged.write(WORK / "source")
        return staged.problems or sphinx(WORK / "source", SITE) or list(docs_links.broken(SITE))


def reference(package: Path, variables: dict[str, str]) -> None:
    """Makes a Markdown page of each operator, an index and the table of dtypes in build/docs."""
    WORK.mkdir(parents=True, exist_ok=True)
    examples, table = WORK / "examples.json", WORK / "table.md"
    python = str(environment.PYTHON)
    status = run(
        [python, "-W", "ignore", "-m", "treadle_testing.examples", str(examples)],
        env=variables,
    )
    if status:
        raise DevError("an operator has no example; the lines above say which", status)
    table.write_text(printed([python, "-m", "treadle", "ops", "--table", "--markdown"], variables))
    model = package / "treadle" / "opmodel.json"
    arguments = ["--model", str(model), "--examples", str(examples), "--table", str(table)]
    status = run([python, "-m", "codegen.reference", *arguments, "--out-dir", str(FOLDER)])
    if status:
        raise DevError("the reference pages could not be made", status)


def interface(variables: dict[str, str]) -> dict[str, str]:
    """The pages of the Python interface."""
    program = str(ROOT / "tools" / "dev" / "docs_api.py")
    return json.loads(printed([str(environment.PYTHON), program], variables))


def printed(command: list[str], variables: dict[str, str]) -> str:
    done = subprocess.run(command, env=merged(variables), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise DevError(f"failed: {' '.join(command)}", done.returncode)
    return done.stdout


def stage(operators: Path, interface_pages: dict[str, str]) -> docs_pages.Stage:
    """The pages of the site, with links that fit."""
    staged = docs_pages.Stage(ROOT)
    for file in sorted((ROOT / "docs").glob("*.md")):
        if file.name != "index.md":
            staged.add_file(file, file.name)
    beside = [name for name in BESIDE if (ROOT / name).exists()]
    for name in beside:
        staged.add_file(ROOT / name, name.lower())
    for file in sorted((operators / "operators").glob("*.md")):
        staged.add_file(file, f"operators/{file.name}")
    staged.add_file(operators / "table.md", "dtypes.md")
    # Not in operators/: a family may have the name of an operator.
    docs_pages.add_index(
        staged, operators / "index.md", "operators.md", ["dtypes.md"], folder="families/"
    )
    for path, text in interface_pages.items():
        below = [page for page in interface_pages if above(page, interface_pages) == path]
        staged.add(path, docs_pages.Page(text + docs_pages.toctree(sorted(below))))
    docs_pages.add_index(
        staged, ROOT / "docs" / "index.md", "index.md", ["operators.md", "python.md"]
    )
    staged.link()
    return staged


def above(page: str, pages: Collection[str]) -> str:
    """The page of the nearest module around one, or the list of modules."""
    module = page.removesuffix(".md")
    while "." in module:
        module = module.rpartition(".")[0]
        if module != "python/treadle" and f"{module}.md" in pages:
            return f"{module}.md"
    return "" if page == "python.md" else "python.md"


def sphinx(source: Path, target: Path) -> list[str]:
    """Builds the site; what Sphinx warned of."""
    warnings = WORK / "warnings.txt"
    settings = ["-c", str(ROOT / "docs"), "-d", str(WORK / "doctrees"), "-j", "auto"]
    command = [str(environment.CHECKERS / "bin" / "sphinx-build"), "-q", "-b", "html", *settings]
    command += ["-W", "--keep-going", "-w", str(warnings), str(source), str(target)]
    status = subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL).returncode
    problems = [line for line in warnings.read_text().splitlines() if line.strip()]
    if status and not problems:
        raise DevError("Sphinx failed; run again: " + " ".join(command), status)
    return [problem.replace(f"{source}/", "docs site: ") for problem in problems]
