"""The version of the package, and the version of PyTorch whose names and behaviour it follows."""

# SPDX-License-Identifier: Apache-2.0

from importlib import metadata

try:
    __version__ = metadata.version("treadle")
except metadata.PackageNotFoundError:  # used from a build folder, not installed
    __version__ = "0.0.0"

FOLLOWED = "2.15.0"
