"""./dev show OP: prints what the generator makes for one operator."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import bazel
import environment
from ui import run


def main(operator: str) -> int:
    environment.prepare()
    output = bazel.build(bazel.Config(), "//generated:model_files")
    model = output / "generated" / "treadle" / "opmodel.json"
    return run(
        [str(environment.PYTHON), "-m", "codegen.render", "--model", str(model), "--show", operator]
    )
