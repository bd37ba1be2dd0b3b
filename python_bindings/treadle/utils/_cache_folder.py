"""The user's folder of files that can be made again."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os


def cache_folder() -> str:
    """$XDG_CACHE_HOME, by default ~/.cache (XDG Base Directory Specification). It may not exist."""
    return os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
