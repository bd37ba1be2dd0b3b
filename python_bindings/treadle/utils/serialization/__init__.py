"""Settings of saving and loading: see config."""

from treadle.utils.serialization import config

__all__ = ["config"]
