"""Loads hostile files one after another and reports what they did: run as a program of its own,
with little memory, so that a file that gets its way is seen.

    python -m checkpoints.siege SEED COUNT

Prints JSON: how many loaded, which exceptions came, what ran, how much time and memory it took.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections
import encodings.cp437  # noqa: F401  zipfile's for old names
import gc
import io
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import time

import treadle
from treadle.utils import safetensors

from . import traps
from .attacks import CHECKPOINTS, Attack, attacks

DECLARED = (RuntimeError, pickle.UnpicklingError, EOFError, safetensors.SafetensorError)
# The audit events of Python: looking into files, starting something, importing and running code.
WATCHED = ("open", "import", "exec", "compile", "subprocess.", "os.", "socket.", "shutil.",
           "ctypes.", "pickle.find_class", "marshal.", "code.", "sqlite3.")  # fmt: skip
ROOM = 256 << 20
# A file does not take the processor longer than this, on a slow and busy machine as well.
LONGEST_SECONDS = 10


class Watch:
    """Records what happens while a file is loaded."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._event)

    def _event(self, event: str, args: tuple) -> None:
        if self.on and event.startswith(WATCHED):
            self.seen.append(f"{event} {str(args)[:80]}")


def load(attack: Attack, turn: int, path: str) -> None:
    """By one of the ways in; every fifth from a path, mapped or not."""
    weights_only = (True, False, None)[turn % 3]
    if attack.format == "safetensors":
        safetensors.load(attack.content)
    elif turn % 5 == 0:
        # The checksums of a mapped file are not looked at.
        mapped = attack.content[:2] == b"PK" and not attack.kind.startswith("damaged")
        treadle.load(path, weights_only=weights_only, mmap=mapped)
    else:
        treadle.load(io.BytesIO(attack.content), weights_only=weights_only)


def warm_up() -> None:
    """Everything that is imported at its first use."""
    treadle.cuda.is_available()  # as a file that names a device of its asks
    for path in sorted(CHECKPOINTS.glob("*.pt")):
        for weights_only in (True, False, None):
            try:
                treadle.load(path, weights_only=weights_only, map_location="cpu")
            except DECLARED:
                pass
    for path in CHECKPOINTS.glob("*.safetensors"):
        safetensors.load_file(path)


def usage() -> dict:
    gc.collect()
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "objects": len(gc.get_objects()),
        "tensors": treadle._C._memory_stats()["current_bytes"],
        "resident": resident,
    }


def main(seed: int, count: int) -> dict:
    """Loads `count` files."""
    warm_up()
    watch, errors = Watch(), collections.Counter()
    loaded, slow, executed = [], [], []
    source = attacks(seed)
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a file that hangs ends the program
    before, handle = {}, tempfile.NamedTemporaryFile(suffix=".pt")
    with handle:
        for turn in range(count):
            if turn == count // 5:
                before = usage()  # by now all caches are full
            attack = next(source)
            if turn % 5 == 0:
                with open(handle.name, "wb") as file:
                    file.write(attack.content)
            signal.alarm(6 * LONGEST_SECONDS)
            began = time.process_time()
            watch.on = True
            try:
                load(attack, turn, handle.name)
                loaded.append(f"{turn} {attack.kind}")
            except DECLARED as error:
                errors[type(error).__name__] += 1
            except BaseException as error:
                errors[f"undeclared {type(error).__name__}: {attack.kind}: {error}"[:200]] += 1
            finally:
                watch.on = False
            took = time.process_time() - began
            if took > LONGEST_SECONDS:
                slow.append(f"{turn} {attack.kind} {took:.1f} s")
            allowed = f"open ('{handle.name}'"
            executed += [event for event in watch.seen if not event.startswith(allowed)]
            watch.seen.clear()
    signal.alarm(0)
    return {
        "errors": dict(errors),
        "loaded": loaded[:20],
        "slow": slow[:20],
        "executed": executed[:20],
        "ran": traps.ran,
        "before": before,
        "after": usage(),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
