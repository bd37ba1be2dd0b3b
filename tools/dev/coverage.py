"""./dev coverage: which of a list of PyTorch's names exist here.

    ./dev coverage names.tsv

Of each line the first word counts: `torch.nn.Linear`, `torch.add`, or a member of an object such as
`Tensor.item`, `Module.eval`, `Optimizer.step`. Names that docs/coming-from-pytorch.md explains are
counted apart; the command fails where a function or a method of tensors is missing without a reason.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "coming-from-pytorch.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a file with one name on each line, or a table")


def main(args: argparse.Namespace) -> int:
    import bazel
    import environment
    from tests import python_environment
    from ui import run

    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    variables = python_environment(config, package)
    return run([str(environment.PYTHON), str(Path(__file__)), args.file], env=variables)


def names_of(text: str) -> list[str]:
    """The first words that look like names; a heading does not."""
    words = (line.split("\t")[0].strip() for line in text.splitlines())
    return [word for word in words if re.fullmatch(r"(import )?[\w|?]+(\.\w+)+", word)]


def explained() -> dict[str, str]:
    """Name -> reason, from the table of the page."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
    return {name: reason for names, reason in rows for name in re.findall(r"`([\w.]+)`", names)}


def objects() -> dict[str, Any]:
    """Whose members `Tensor.item` and the like are."""
    import treadle

    module = treadle.nn.Linear(2, 2)
    optimizer = treadle.optim.SGD(module.parameters(), lr=0.1)
    return {"Tensor": treadle.zeros(2, 2), "Module": module, "Optimizer": optimizer}


def has(owner: Any, name: str) -> bool:
    try:
        getattr(owner, name)
    except AttributeError:
        return False
    except Exception:
        return True  # a property that this object refuses: x.imag of a real tensor
    return True


def exists(name: str) -> bool:
    """Whether the name leads to something, by attributes and by imports."""
    first, *path = name.removeprefix("import ").split(".")
    if first != "torch":
        owners = [owner for word in first.strip("?").split("|") if (owner := objects().get(word))
                  is not None]  # fmt: skip
        return bool(owners) and all(has(owner, path[0]) for owner in owners)
    owner = importlib.import_module("treadle")
    for i, part in enumerate(path):
        if not has(owner, part):
            try:
                importlib.import_module(".".join(["treadle", *path[: i + 1]]))
            except ImportError:
                return False
        owner = getattr(owner, part)
    return True


def is_function(name: str) -> bool:
    """Whether it is one of the functions and tensor methods that operators answer for."""
    return bool(re.match(r"torch\.[a-z]\w*$|torch\.(linalg|fft|special)\.\w+$|Tensor\W*\.", name))


def lines(names: list[str]) -> Iterator[str]:
    reasons = explained()
    missing = [name for name in names if not exists(name)]
    unexplained = [name for name in missing if name.removeprefix("import ") not in reasons]
    functions = [name for name in names if is_function(name)]
    yield f"{len(names)} names, {len(names) - len(missing)} exist, {len(missing)} do not"
    for name in missing:
        yield f"  {name}: {reasons.get(name.removeprefix('import '), 'not yet')}"
    gone = [name for name in unexplained if name in functions]
    yield f"{len(functions)} functions and tensor methods, {len(gone)} missing without a reason"
    for name in gone:
        yield f"  {name}"


if __name__ == "__main__":
    report = list(lines(names_of(Path(sys.argv[1]).read_text())))
    print("\n".join(report))
    sys.exit(0 if report[-1].endswith(" 0 missing without a reason") else 1)
