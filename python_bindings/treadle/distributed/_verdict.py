"""The rank at fault when a call of a group fails: a text, made of the answers of the ranks.

    call 7 of group 0 differs between the ranks:
    rank 2 called broadcast(float32 [3], root 0), which waits for the others
    rank 0, 1 called all_reduce(float32 [3]), which waits for the others

The number counts the calls of the group; init_process_group() and new_group() make the first one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

# The states of a rank that says nothing of its calls itself.
ENDED = "its process has ended"
SILENT = "it does not answer: its process is stopped or hangs, or its machine cannot be reached"

_MOST_LINES = 3  # of ranks, beside the one that says what the verdict is
# Functions in which all ranks have tensors of one shape; of the others the shapes may differ.
_ONE_SHAPE = ("all_reduce", "broadcast", "reduce", "reduce_scatter", "reduce_scatter_tensor")
_ONE_ROOT = ("broadcast", "reduce", "gather", "scatter")


class Said(NamedTuple):
    """The knowledge of a rank: the reason why it says nothing; or its calls, the oldest first, as
    the engine records them, and whether it has left the group."""

    silence: str = ""
    calls: Sequence[Dict[str, Any]] = ()
    has_left: bool = False


def _dtype(number: int) -> str:
    from treadle.distributed._engine_group import _DTYPES

    return _DTYPES[number] if number < len(_DTYPES) else f"dtype {number}"


def _call(entry: Dict[str, Any]) -> str:
    """A call as a program writes it: all_reduce(float32 [3])."""
    if entry["name"] == "barrier":
        return "barrier()"
    root = f", root {entry['root']}" if entry["name"] in _ONE_ROOT else ""
    return f"{entry['name']}({_dtype(entry['dtype'])} {entry['shape']}{root})"


def _must_agree(entry: Dict[str, Any]) -> tuple:
    name = entry["name"]
    return (
        name,
        None if name == "barrier" else entry["dtype"],
        tuple(entry["shape"]) if name in _ONE_SHAPE else None,
        entry["root"] if name in _ONE_ROOT else None,
    )


def _at(said: Said, number: int) -> Optional[Dict[str, Any]]:
    for entry in reversed(said.calls):
        if entry["number"] == number and not entry["is_message"]:
            return entry
    return None


def _last(said: Said) -> Optional[Dict[str, Any]]:
    calls = [entry for entry in said.calls if not entry["is_message"]]
    return calls[-1] if calls else None


def _state(entry: Dict[str, Any], now: float) -> str:
    if entry["state"] == "completed":
        return f"ended {max(now - entry['ended'], 0):.3g} s ago"
    if entry["state"] == "failed":
        return "failed"
    since = entry["started"] or entry["queued"]
    return f"under way for {max(now - since, 0):.3g} s"


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"rank {shown}" + (f" and {len(ranks) - 8} others" if len(ranks) > 8 else "")


def _missing(said: Said, now: float) -> str:
    last = _last(said)
    did = (
        "it has made no call"
        if last is None
        else (f"its last call is {last['number']}, {_call(last)}, {_state(last, now)}")
    )
    return f"has not called it: {'it has left the group; ' if said.has_left else ''}{did}"


def _together(ranks: Dict[int, Said], number: int, now: float) -> List[str]:
    """The call of each rank as this number, the calls of the fewest ranks first: those that called
    the same are in one line."""
    same: Dict[tuple, List[int]] = {}
    for rank, said in ranks.items():
        entry = _at(said, number)
        if entry is not None:
            same.setdefault((*_must_agree(entry), entry["state"] == "completed"), []).append(rank)
    lines = []
    for members in sorted(same.values(), key=len):
        entry = _at(ranks[members[0]], number)
        assert entry is not None
        has_ended = entry["state"] == "completed"
        state = _state(entry, now) if has_ended else "which waits for the others"
        lines.append(f"{_ranks(members)} called {_call(entry)}, {state}")
    return lines


def _first_open(said: Said) -> Optional[int]:
    """The number of the first call that has not succeeded."""
    open_calls = (e for e in said.calls if not e["is_message"] and e["state"] != "completed")
    entry = next(open_calls, None)
    return None if entry is None else int(entry["number"])


def _at_fault(ranks: Dict[int, Said], number: int, now: float) -> Tuple[str, List[str]]:
    """The fault of the call of this number among ranks that are all there, and who; empty
    where nothing is."""
    calls = {rank: _at(said, number) for rank, said in ranks.items()}
    if len({_must_agree(entry) for entry in calls.values() if entry is not None}) > 1:
        return " differs between the ranks", _together(ranks, number, now)[:4]
    late = [rank for rank, entry in calls.items() if entry is None]
    found = [f"rank {rank} {_missing(ranks[rank], now)}" for rank in late[:_MOST_LINES]]
    if len(late) > _MOST_LINES:
        found[-1] = f"{_ranks(late[_MOST_LINES - 1 :])} have not called it"
    return "", found


def verdict(ranks: Dict[int, Said], group: str, number: int, now: float) -> str:
    """Why the call of this number cannot succeed, in at most five lines; empty where no rank is to
    blame. `ranks` are those of the group, by their rank in the group of all."""
    head, found = "", []
    here = dict(ranks)
    for reason in (ENDED, SILENT):
        silent = [rank for rank, said in ranks.items() if said.silence == reason]
        if silent:
            found.append(f"{_ranks(silent)}: {reason}")
            for rank in silent:
                del here[rank]
    if not found:
        # A call may end in one rank alone, as a broadcast does at its root: the ranks may have
        # parted before the call that failed.
        numbers = [_first_open(said) for said in here.values()]
        for each in sorted({number, *(n for n in numbers if n is not None and n < number)}):
            head, found = _at_fault(here, each, now)
            if found:
                number = each
                break
    if not found:
        return ""
    others = [] if head else _together(here, number, now)
    return "\n".join([f"call {number} of group {group}{head}:", *[*found, *others][:4]])


__all__ = ["ENDED", "SILENT", "Said", "verdict"]
