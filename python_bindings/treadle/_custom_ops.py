"""The older place of `library.get_ctx`."""

from treadle.library import get_ctx

__all__ = ["get_ctx"]
