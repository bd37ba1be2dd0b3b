"""The version of the package."""

from importlib import metadata

try:
    __version__ = metadata.version("treadle")
except metadata.PackageNotFoundError:  # used from a build folder, not installed
    __version__ = "0.0.0"
