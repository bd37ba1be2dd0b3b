"""The older place of `library.get_ctx`."""

# SPDX-License-Identifier: Apache-2.0

from treadle.library import get_ctx

__all__ = ["get_ctx"]
