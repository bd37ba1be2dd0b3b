"""The smallest useful backend of Treadle: `import treadle` finds it by its entry point."""

# SPDX-License-Identifier: Apache-2.0

import sysconfig
from pathlib import Path


def library() -> str:
    """The path of the backend's shared library, for treadle.load_backend()."""
    return str(Path(__file__).parent / f"backend{sysconfig.get_config_var('EXT_SUFFIX')}")
