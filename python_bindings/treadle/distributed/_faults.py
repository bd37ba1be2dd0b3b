"""Finds out, when a call of a group fails, which rank is at fault, and says so to all ranks.

Each process has a thread that waits at the store of the group. A rank whose call fails asks there;
the threads of all ranks answer with their last calls. Who does not answer is gone, or stopped. What
follows (see _verdict) is written to the store before any rank goes on, and the others end their
calls of the group: their errors say the same.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import json
import threading
import time
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence

from treadle.distributed import flight_record
from treadle.distributed._stores.table import Request
from treadle.distributed._verdict import ENDED, SILENT, Said, verdict
from treadle.distributed.errors import DistBackendError, DistError, DistStoreError
from treadle.distributed.store import PrefixStore, Store, TCPStore

_ANSWER_SECONDS = 3.0  # for the answers of all ranks
_HEARD_SECONDS = 1.0  # for all ranks to hear the verdict
_OTHERS_SECONDS = 0.5  # for other ranks that are asking
_POLL = 0.02
_LONG = 3600.0
_ANSWERED_CALLS = 64  # of each group in an answer


def _root(store: Store) -> Store:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store


class Watch:
    """The work of a process about faults, from the start of the group of all to its end.

    `holder` is the rank whose process holds the store; None where it is none of the group's.
    """

    def __init__(self, store: Store, rank: int, groups: List[Any], holder: Optional[int]) -> None:
        self._store = PrefixStore("faults", store.clone())
        self._store.set_timeout(timedelta(seconds=_ANSWER_SECONDS))
        self._rank = rank
        self._groups = groups  # a list that grows and shrinks with the program's groups
        self._holder = holder
        self._asking = threading.Lock()
        self._ended = False
        self._verdicts: Dict[str, str] = {}  # of groups whose calls were ended
        self._lost = ""  # why the store cannot be asked any more
        self._listens = PrefixStore("faults", store.clone())
        self._store.check(["gone"])  # a connection, whose end says that the store is gone
        self._leave_a_will()
        self._thread = threading.Thread(target=self._listen, name="faults", daemon=True)
        self._thread.start()

    # ---- The thread ----

    def _listen(self) -> None:
        number = 1
        with contextlib.suppress(Exception):  # the store is gone: there is nobody to answer to
            while not self._ended:
                asked = self._next_question(number)
                if asked is None:
                    continue
                if asked["verdict"]:
                    self._verdicts[asked["group"]] = asked["verdict"]
                    self._end_calls(asked["group"])
                self._listens.set(f"answer/{number}/{self._rank}", self._answer(False))
                number += 1

    def _leave_a_will(self) -> None:
        root = _root(self._listens)
        if isinstance(root, TCPStore):
            key = f"gone/{self._rank}"
            self._listens._ask(Request("will", (key,), (b"1",)), 0.0)

    def _next_question(self, number: int) -> Optional[Dict[str, Any]]:
        """The question of this number; None if it has not come after some time."""
        key = f"question/{number}"
        if isinstance(_root(self._listens), TCPStore):
            # One reply brings it: the process that holds the store may end right after.
            found = self._listens._ask(Request("get", (key,)), _LONG)
            return None if found is None else json.loads(found[0])
        time.sleep(0.1)
        return json.loads(self._listens.get(key)) if self._listens.check([key]) else None

    def _answer(self, has_left: bool) -> str:
        calls = {g.group_name: flight_record.calls_of(g)[-_ANSWERED_CALLS:] for g in self._groups}
        return json.dumps({"has_left": has_left, "calls": calls})

    def _end_calls(self, name: str) -> None:
        for group in list(self._groups):
            if group.group_name == name:
                group.abort()

    # ---- Failures ----

    def explained(self, group: Any, error: DistError, is_message: bool) -> DistError:
        """The error of a call, with the verdict in its text."""
        if getattr(error, "_is_explained", False):
            return error
        with contextlib.suppress(OSError):
            flight_record._dump_after_failure()
        text = self._verdict(group, is_message)
        made = type(error)(f"{error}\n{text}" if text else str(error))
        made.rank = error.rank
        made._is_explained = True  # type: ignore[attr-defined]
        return made

    def _verdict(self, group: Any, is_message: bool) -> str:
        failed = [
            call
            for call in flight_record.calls_of(group)
            if call["state"] == "failed" and call["is_message"] == is_message
        ]
        if self._ended or not failed:
            return ""
        name, number = group.group_name, failed[0]["number"]
        with self._asking:
            if name in self._verdicts and not is_message:
                return self._verdicts[name]
            head = f"call {number} of group {name}:"
            if self._lost:
                return f"{head}\n{self._lost}"
            try:
                self._store.add("asking", 1)
                said = self._ask({"group": name, "verdict": ""}, group.members, _ANSWER_SECONDS)
                if is_message:
                    text = _of_message(said)
                else:
                    text = verdict(said, name, number, time.time())
                    if text:
                        text = self._verdicts[name] = self._told(name, text, said)
                self._store.add("asking", -1)
                self._let_others_ask()
                return text
            except DistError as error:
                self._lost = self._without_store(error)
                return self._verdicts.get(name, f"{head}\n{self._lost}")

    def _let_others_ask(self) -> None:
        """The store stays for those who are asking, for some time: the process that holds it may
        end after the error."""
        end = time.monotonic() + _OTHERS_SECONDS
        while self._rank == self._holder and time.monotonic() < end:
            if self._store.add("asking", 0) <= 0:
                return
            time.sleep(_POLL)

    def _told(self, name: str, text: str, said: Dict[int, Said]) -> str:
        """Tell the verdict to all ranks, if no other rank has told one before: that counts. Returns
        when the ranks that are there have heard it."""
        key = f"verdict/{name}"
        text = self._store.compare_set(key, "", text).decode()
        here = [rank for rank, each in said.items() if not each.silence and not each.has_left]
        self._ask({"group": name, "verdict": text}, here, _HEARD_SECONDS)
        return text

    def _without_store(self, error: DistError) -> str:
        reason = str(error).splitlines()[0]
        if self._holder is None:
            return f"no rank can be asked for its calls: {reason}"
        return (
            f"rank {self._holder}, which holds the store, does not answer: its process has ended, "
            f"is stopped or hangs\n({reason})"
        )

    def _ask(
        self, question: Dict[str, Any], ranks: Sequence[int], seconds: float
    ) -> Dict[int, Said]:
        """The answer of each of these ranks about its calls of a group, within so many seconds."""
        number = self._store.add("questions", 1)
        self._store.set(f"question/{number}", json.dumps(question))
        waited = set(ranks)
        found: Dict[int, Said] = {}
        end = time.monotonic() + seconds
        while waited:
            for rank in sorted(waited):
                said = self._said(number, rank, question["group"])
                if said is not None:
                    found[rank] = said
                    waited.remove(rank)
            if waited and time.monotonic() >= end:
                break
            if waited:
                time.sleep(_POLL)
        found.update({rank: Said(SILENT) for rank in waited})
        return dict(sorted(found.items()))

    def _said(self, number: int, rank: int, name: str) -> Optional[Said]:
        for key in (f"answer/{number}/{rank}", f"left/{rank}"):
            if self._store.check([key]):
                said = json.loads(self._store.get(key))
                return Said("", said["calls"].get(name, []), said["has_left"])
        return Said(ENDED) if self._store.check([f"gone/{rank}"]) else None

    # ---- Checks before calls ----

    def check(self, group: Any, mine: Dict[str, Any], timeout: timedelta) -> None:
        """Compare a call with those of the other ranks before it begins. DistBackendError where
        they differ."""
        number = group.__dict__["_checked"] = group.__dict__.get("_checked", 0) + 1
        place = f"check/{group.group_name}"
        keys = [f"{place}/{number}/{rank}" for rank in group.members]
        entry = {**mine, "number": number, "is_message": False, "state": "scheduled"}
        entry.update(queued=time.time(), started=0.0, ended=0.0)
        self._store.set(keys[group.rank()], json.dumps(entry))
        with contextlib.suppress(DistStoreError):
            self._store.wait(keys, timeout)
        said: Dict[int, Said] = {}
        for rank, key in zip(group.members, keys):
            there = self._store.check([key])
            said[rank] = Said("", [json.loads(self._store.get(key))] if there else [])
        if number > 2:  # which all ranks have read
            self._store.delete_key(f"{place}/{number - 2}/{self._rank}")
        text = verdict(said, group.group_name, number, time.time())
        if text:
            # All have read it when the process that holds the store may end.
            with contextlib.suppress(DistError):
                self._store.barrier(f"{place}/{number}/read", group.size())
            name = mine["name"]
            raise DistBackendError(f"{name}: expected the same call of all ranks, got\n{text}")

    def end(self) -> None:
        """This process leaves the groups: says so, and ends the thread."""
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(Exception):
            self._store.set(f"left/{self._rank}", self._answer(True))
        self._listens.close()
        self._store.close()


def _of_message(said: Dict[int, Said]) -> str:
    """The ranks that do not answer: messages have no number that all ranks know."""
    lines = []
    for reason in (ENDED, SILENT):
        ranks = [rank for rank, each in said.items() if each.silence == reason]
        if ranks:
            lines.append(f"rank {', '.join(map(str, ranks[:8]))}: {reason}")
    return "\n".join(lines)


__all__ = ["Watch"]
