"""The CUDA backend of Treadle: where its library is. `treadle` finds this package by its name and
loads the library when a CUDA device is first asked for; there is nothing to import here.
"""

# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

LIBRARY = str(Path(__file__).with_name("lib") / "libtreadle_cuda.so")
