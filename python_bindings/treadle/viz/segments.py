"""The memory of a device as a picture: a row for each segment, and in it the blocks."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from html import escape
from typing import Any, Iterable, NamedTuple

from .drawing import Drawing

_WIDTH, _ROW, _BAR, _MARGIN = 900.0, 44.0, 20.0, 16.0
_STATES = {
    "active_allocated": ("used", "in use"),
    "active_pending_free": ("pending", "freed, other streams may still use it"),
    "inactive": ("kept", "kept for later"),
}
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b1f24}"
    "rect{stroke:#fff;stroke-width:.6}"
    ".used{fill:#218bff}.pending{fill:#d4a72c}.kept{fill:#d0d7de}"
)


class _Segment(NamedTuple):
    title: str
    size: int
    blocks: list[tuple[int, int, str]]  # place, size, state


def memory(snapshot: Iterable[dict]) -> Drawing:
    """Draw what `treadle.cuda.memory_snapshot()`, or that of another device, says: the segments by
    device, stream and address, as long as they are large. Blocks in use are blue, those kept for
    later tensors grey, those freed that other streams may still use yellow; a block says its place
    in the segment and its size where the pointer rests on it.

    Returns a Drawing. TypeError for what is no snapshot.
    """
    if isinstance(snapshot, dict):
        snapshot = snapshot.get("segments", snapshot)
    segments = [_segment(entry) for entry in sorted(_checked(snapshot), key=_order)]
    longest = max((segment.size for segment in segments), default=1)
    height = _ROW * (len(segments) + 1) + 2 * _MARGIN
    width = _WIDTH + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">',
        f'<text y="14">{escape(_total(segments))}</text>',
    ]
    for row, segment in enumerate(segments, 1):
        parts += _drawn(segment, row * _ROW, _WIDTH / longest)
    return Drawing("\n".join([*parts, "</g>", "</svg>"]) + "\n")


def _checked(snapshot: Any) -> list[dict]:
    entries = list(snapshot) if isinstance(snapshot, Iterable) else [snapshot]
    for entry in entries:
        if not isinstance(entry, dict) or "blocks" not in entry:
            raise TypeError(
                f"memory: expected the segments of memory_snapshot(), got {type(entry).__name__}"
            )
    return entries


def _order(entry: dict) -> tuple:
    return entry["device"], entry["stream"], entry["segment_type"] != "small", entry["address"]


def _segment(entry: dict) -> _Segment:
    title = (
        f"device {entry['device']}, stream {entry['stream']}, {entry['segment_type']}: "
        f"{size_text(entry['active_size'])} of {size_text(entry['total_size'])} in use"
    )
    blocks, place = [], 0
    for block in entry["blocks"]:
        blocks.append((place, block["size"], block["state"]))
        place += block["size"]
    return _Segment(title, entry["total_size"], blocks)


def _total(segments: list[_Segment]) -> str:
    total = size_text(sum(s.size for s in segments))
    used = sum(size for s in segments for _, size, state in s.blocks if state != "inactive")
    return f"{len(segments)} segments, {total}, of which {size_text(used)} in use"


def _drawn(segment: _Segment, top: float, scale: float) -> list[str]:
    parts = [f'<text y="{top:g}">{escape(segment.title)}</text>']
    for place, size, state in segment.blocks:
        kind, meaning = _STATES[state]
        parts.append(
            f'<rect class="{kind}" x="{place * scale:.2f}" y="{top + 6:g}" '
            f'width="{size * scale:.2f}" height="{_BAR:g}"><title>at {place}: {size_text(size)}, '
            f"{meaning}</title></rect>"
        )
    return parts


def size_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"
