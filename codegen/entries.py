"""Entries of a library outside of Treadle, checked and read by schemac into a model."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Union

from .diagnostics import CodegenError

PACKAGE = Path(__file__).parent.parent
SCHEMAC = PACKAGE / "bin" / "schemac"
MODEL = PACKAGE / "opmodel.json"


def write_model(
    functions: Union[str, Path], derivatives: Union[str, Path, None], name: str, model: Path
) -> None:
    """Writes the model of the entries in `functions`, of the library `name`, to the file `model`.

    CodegenError for what schemac reports.
    """
    command = [str(SCHEMAC), "--functions", str(functions), "--library", name]
    command += ["--base", str(MODEL), "--out", str(model)]
    if derivatives is not None:
        command += ["--derivatives", str(derivatives)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CodegenError(done.stderr.partition("\nusage:")[0].strip())
