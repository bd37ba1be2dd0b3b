"""`import torch` in a Python process that has this folder on its path: becomes treadle.

treadle.run puts the folder there for the processes that a program starts, which begin without the
import hook (workers that are spawned, and `subprocess`). The first `import torch` in them comes
here and installs it.
"""

# SPDX-License-Identifier: Apache-2.0

import sys
from pathlib import Path

try:
    from treadle import run
except ModuleNotFoundError:  # the parent had found the package in its working directory
    sys.path.append(str(Path(__file__).parents[2]))
    from treadle import run

del sys.modules["torch"]  # this file, until the hook is there
run.install()
