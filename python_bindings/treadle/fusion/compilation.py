"""Compiles loops of fused operators in the background, with the C++ compiler of this machine.

A loop is compiled once for all programs of the user: the shared library is kept in the user's cache
by a hash of its source, the flags, the compiler and this Treadle.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import atexit
import ctypes
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

from treadle import _C
from treadle.backends.cpu import get_cpu_capability
from treadle.utils import _compiler, operator_library
from treadle.utils._cache_folder import cache_folder

# The instructions that the library chose on this machine: another choice would round functions such
# as `exp` in another way.
_TARGETS: Dict[str, str] = {"AVX512": "HWY_AVX3", "AVX2": "HWY_AVX2"}

# Most of the compiler's time goes to the headers, which loops share.
_MOST_AT_ONCE = 16
_PAUSE = 0.05  # seconds

_SOURCE = """#define TREADLE_ONE_TARGET
#define TREADLE_TARGET_INCLUDE ""
#include "aten/backend/cpu/foreach_target.h"
#include "aten/elements-inl.h"
HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {{
{loops}
}}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
"""
_LOOP = """
namespace loop_{key} {{
{loop}
extern "C" __attribute__((visibility("default"))) void* treadle_loop_{key}() {{
  return reinterpret_cast<void*>(block);
}}
}}  // namespace loop_{key}
"""


class CompiledLoops(NamedTuple):
    """How many loops of fused operators were compiled."""

    ready: int
    wanted: int  # are being compiled, or wait for it
    failed: int  # the operators' own loops run instead of these


class _Worker:
    """The thread that compiles."""

    def __init__(self) -> None:
        self._thread: Optional[threading.Thread] = None
        self._compiler: Optional[subprocess.Popen] = None
        self._kept: List[ctypes.CDLL] = []
        self._ends = False

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="treadle-fusion", daemon=True)
            self._thread.start()

    def start_again(self) -> None:
        """In a child process, which has no thread but the one that forked."""
        if self._thread is not None:
            self._thread, self._compiler = None, None
            _C._want_loops_again()
            self.start()

    def end(self) -> None:
        """At the end of the program: leaves no process and no half-made file."""
        if self._thread is None:
            return
        self._ends = True
        compiler = self._compiler
        if compiler is not None:
            compiler.kill()
        self._thread.join()

    def _run(self) -> None:
        # It looks now and then: a thread that waited in C++ would count as one in an operator.
        while not self._ends:
            loops = _C._take_wanted_loops(_MOST_AT_ONCE)
            if not loops:
                time.sleep(_PAUSE)
                continue
            try:
                found = self._functions(loops)
            except Exception:  # no compiler, no room on the disk: the operators' own loops run
                found = {}
            for loop in loops:
                _C._set_compiled_loop(loop, found.get(loop, 0))

    def _functions(self, loops: List[str]) -> Dict[str, int]:
        """The addresses of the loops' functions. CompilerError, OSError."""
        command = _command()
        common = (
            *command,
            _compiler.version_of(tuple(_compiler.compiler())),
            operator_library.stamp(),
        )
        folder = Path(cache_folder()) / "treadle_fusion"
        keys = {loop: _compiler.digest(_SOURCE, _LOOP, loop, *common) for loop in loops}
        missing = {key: loop for loop, key in keys.items() if not (folder / f"{key}.so").exists()}
        if missing:
            self._build(missing, command, folder)
        return {loop: self._load(folder, key) for loop, key in keys.items()}

    def _build(self, loops: Dict[str, str], command: List[str], folder: Path) -> None:
        """One library of all loops, under the name of each."""
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as work:
            source, made = Path(work) / "loops.cc", Path(work) / "loops.so"
            texts = [_LOOP.format(key=key, loop=loop) for key, loop in loops.items()]
            source.write_text(_SOURCE.format(loops="".join(texts)))
            self._compile([*command, str(source), "-o", str(made)])
            for key in loops:
                named = Path(work) / key
                os.link(made, named)
                os.replace(named, folder / f"{key}.so")

    def _load(self, folder: Path, key: str) -> int:
        library = ctypes.CDLL(str(folder / f"{key}.so"))
        self._kept.append(library)
        function = getattr(library, f"treadle_loop_{key}")
        function.restype = ctypes.c_void_p
        return int(function())

    def _compile(self, command: List[str]) -> None:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as compiler:
            self._compiler = compiler
            if self._ends:
                compiler.kill()
            status = compiler.wait()
        self._compiler = None
        if status != 0:
            raise _compiler.CompilerError(f"it ended with status {status}")


def _command() -> List[str]:
    target = _TARGETS.get(get_cpu_capability())
    named = [f"-DHWY_BASELINE_TARGETS={target}"] if target else []
    return [*_compiler.compiler(), *_compiler.compile_flags(), *named, "-shared"]


_worker = _Worker()
os.register_at_fork(after_in_child=_worker.start_again)
atexit.register(_worker.end)


def set_compiling(on: bool) -> None:
    """Whether loops that run often are compiled, and those that were are used."""
    if on:
        _worker.start()
    _C._set_compiling(on)


def compiled_loops() -> CompiledLoops:
    """How many loops were compiled, are being compiled, and could not be."""
    return CompiledLoops(*_C._count_compiled_loops())


def finish_compiling(timeout: Optional[float] = None) -> CompiledLoops:
    """Waits until no loop is being compiled, for at most `timeout` seconds; for tests and timings.

    TimeoutError where that is not enough.
    """
    end = None if timeout is None else time.monotonic() + timeout
    while (loops := compiled_loops()).wanted:
        if end is not None and time.monotonic() > end:
            raise TimeoutError(
                f"finish_compiling: expected {loops.wanted} loops to be compiled within {timeout} s"
            )
        time.sleep(0.01)
    return loops
