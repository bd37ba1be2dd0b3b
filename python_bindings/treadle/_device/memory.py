"""The memory of devices from outside: what tensors take, what is kept for later ones, and where it
lies.

A device gives memory in segments, which are cut into blocks for tensors. A block that is freed is
kept, and serves a later tensor on the same stream.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict, Iterator, List, Tuple

from treadle import _C
from treadle._device.index import index_of

_ROWS = (
    ("allocated_bytes", "Allocated memory"),
    ("active_bytes", "Active memory"),
    ("requested_bytes", "Requested memory"),
    ("reserved_bytes", "Reserved memory"),
    ("inactive_split_bytes", "Non-releasable memory"),
    ("allocation", "Allocations"),
    ("active", "Active allocs"),
    ("segment", "Reserved segments"),
    ("inactive_split", "Non-releasable allocs"),
)
_POOLS = (("large_pool", "      from large pool"), ("small_pool", "      from small pool"))
_COLUMNS = ("current", "peak", "allocated", "freed")
_WIDTH = 75


class MemoryFunctions:
    """The functions of `treadle.NAME` that are about memory."""

    _name: str

    def mem_get_info(self, device: Any = None) -> Tuple[int, int]:
        """Bytes of a device that are free, and all it has; 0 where the backend does not know."""
        return _C._backend_memory_info(self._name, index_of(self._name, device))

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes that tensors take on a device."""
        return self._bytes("allocated_bytes", device)["current"]

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most bytes that tensors took at one time, since the start or
        reset_peak_memory_stats()."""
        return self._bytes("allocated_bytes", device)["peak"]

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes that tensors take, and those kept for later ones."""
        return self._bytes("reserved_bytes", device)["current"]

    def max_memory_reserved(self, device: Any = None) -> int:
        """The most bytes that were taken and kept at one time, since the start or
        reset_peak_memory_stats()."""
        return self._bytes("reserved_bytes", device)["peak"]

    def memory_stats(self, device: Any = None) -> Dict[str, int]:
        """Numbers about a device's memory, by names like "allocated_bytes.all.current".

        The first part is "allocation" (blocks that tensors hold), "active" (and those freed that
        other streams may still use), "segment" (what the device gave), "inactive_split" (free
        blocks of segments partly in use), "allocated_bytes", "active_bytes", "reserved_bytes" and
        "inactive_split_bytes" (the bytes of each), or "requested_bytes" (before sizes were rounded
        up). The second is "all", "small_pool" (of requests up to 1 MiB) or "large_pool"; the third
        "current", "peak", "allocated" or "freed" (sums of all increases and decreases). Then there
        are counts: "num_alloc_retries", "num_ooms", "num_sync_all_streams", and of requests to the
        device "num_device_alloc" and "num_device_free".
        """
        return OrderedDict(sorted(_flat("", self.memory_stats_as_nested_dict(device))))

    def memory_stats_as_nested_dict(self, device: Any = None) -> Dict[str, Any]:
        """memory_stats() with a dict for each part of the names."""
        stats = _C._backend_memory_statistics(self._name, index_of(self._name, device))
        # Blocks of every size may be cut, so that none is "oversize".
        stats["max_split_size"] = -1
        for quantity in ("oversize_allocations", "oversize_segments"):
            stats[quantity] = dict.fromkeys(_COLUMNS, 0)
        return stats

    def _bytes(self, quantity: str, device: Any) -> Dict[str, int]:
        index = index_of(self._name, device)
        return _C._backend_memory_statistics(self._name, index)[quantity]["all"]

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """The numbers of memory_stats() as a table; `abbreviated`: without the pools."""
        index = index_of(self._name, device)
        number = self.current_device() if index < 0 else index  # type: ignore[attr-defined]
        stats = self.memory_stats_as_nested_dict(device)
        lines = [
            "=",
            f"Memory of {self._name}:{number}".center(_WIDTH),
            "-",
            f"  out of memory: {stats['num_ooms']:<12d} |  retries: {stats['num_alloc_retries']}",
            "=",
            " Metric                | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed",
        ]
        for quantity, title in _ROWS:
            lines.append("-")
            shown = _size if quantity.endswith("bytes") else _count
            for pool, name in (("all", title), *(() if abbreviated else _POOLS)):
                values = stats[quantity][pool]
                cells = (
                    shown(values[column], stats[quantity]["all"][column]) for column in _COLUMNS
                )
                lines.append(f" {name:<21} | {' | '.join(cells)}")
        lines.append("=")
        rows = (line * _WIDTH if line in "=-" else line.ljust(_WIDTH) for line in lines)
        return "\n".join(f"|{row}|" for row in rows) + "\n"

    def memory_snapshot(self) -> List[Dict[str, Any]]:
        """The segments of all devices: for each its "device", "address", "total_size", "stream",
        "segment_type" ("small" or "large"), "segment_pool_id", the bytes in it ("allocated_size",
        "active_size", "requested_size"), and its "blocks" in their order, each with "address",
        "size", "requested_size" and "state": "active_allocated", "active_pending_free" (freed, but
        other streams may still use it) or "inactive"."""
        count = _C._backend_device_count(self._name)
        found = (_C._backend_memory_snapshot(self._name, index) for index in range(count))
        return [segment for segments in found for segment in segments]

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Let every peak start again from what is taken now."""
        _C._backend_reset_peaks(self._name, index_of(self._name, device))

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        """Let the sums ("allocated" and "freed") and the counts start again from 0."""
        _C._backend_reset_accumulated(self._name, index_of(self._name, device))

    def empty_cache(self) -> None:
        """Give memory that is kept for later tensors back to the devices."""
        _C._backend_release_kept(self._name)

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Let tensors and what is kept for later ones take at most this part of a device's memory.
        TypeError unless it is a float, ValueError unless it is from 0 to 1, RuntimeError where the
        backend does not know how much memory the device has."""
        if not isinstance(fraction, float):
            raise TypeError(
                f"set_per_process_memory_fraction: expected a float, got {type(fraction).__name__}"
            )
        _C._backend_set_memory_fraction(self._name, index_of(self._name, device), fraction)

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        """The fraction that set_per_process_memory_fraction() set; 1.0 where nothing is limited."""
        return _C._backend_memory_fraction(self._name, index_of(self._name, device))


def _flat(prefix: str, values: Dict[str, Any]) -> Iterator[Tuple[str, int]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield prefix + key, value


def _scaled(value: int, scale: int, step: int, units: Tuple[str, ...], width: int) -> str:
    """The value in the unit in which `scale` has few digits."""
    unit = 0
    while scale >= step * step * 3 // 4 and unit < len(units) - 1:
        value, scale, unit = value // step, scale // step, unit + 1
    return f"{value:{width}d} {units[unit]}"


def _size(value: int, scale: int) -> str:
    return _scaled(value, scale, 1024, ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"), 6)


def _count(value: int, scale: int) -> str:
    return _scaled(value, scale, 1000, ("  ", "K ", "M "), 7)
