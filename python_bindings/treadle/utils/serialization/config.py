"""Settings of `treadle.save` and `treadle.load` for programs that do not give them.

Example:

    treadle.utils.serialization.config.load.mmap = True
    treadle.utils.serialization.config.save.storage_alignment = 4096
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import mmap as _mmap
from typing import Any, Optional


class load:  # noqa: N801
    """Settings of load: whether files are mapped, and how (an option of the module mmap); the
    byte order of files that do not say it, None for that of the machine;
    `calculate_storage_offsets` changes nothing, as the places of storages are read in any case."""

    mmap: bool = False
    endianness: Optional[Any] = None
    mmap_flags: Optional[int] = _mmap.MAP_PRIVATE
    calculate_storage_offsets: bool = False


class save:  # noqa: N801
    """Settings of save: the number of bytes at whose multiples storages begin, at least 64. A
    file has checksums and is written from plain memory, whatever the other two say."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64


__all__ = ["load", "save"]
