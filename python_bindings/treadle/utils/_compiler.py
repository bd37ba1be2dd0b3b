"""Compiles C++ for extensions: the compiler that is there, its options, only what has changed.

    objects = compile_all(sources, Path("build"), Options(includes=["gen"]))
    link(objects, Path("my_ops/_C.so"), options)

An object is made again when its command, its source or a header that it included (the system's and
Treadle's apart: the stamp in the command stands for those) has other contents than before.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Iterator, Optional, Sequence

from . import operator_library

PACKAGE = operator_library.PACKAGE

# As Treadle itself is compiled: no multiplication is fused with an addition unless written so.
FLAGS = [
    "-std=c++20",
    "-O3",
    "-fPIC",
    "-fopenmp",
    "-ffp-contract=off",
    "-fno-math-errno",
]


class CompilerError(RuntimeError):
    """The compiler's first error, with its place."""


@dataclass
class Options:
    includes: Sequence[str] = ()
    cflags: Sequence[str] = ()
    ldflags: Sequence[str] = ()
    verbose: bool = False
    standalone: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def words(self, variable: str) -> list[str]:
        return shlex.split(self.environment.get(variable, ""))


def include_paths() -> list[str]:
    """Folders of the headers: Treadle's, and Python's."""
    return [str(PACKAGE / "include"), sysconfig.get_paths()["include"]]


def library_paths() -> list[str]:
    """The folder of libtreadle.so."""
    return [str(PACKAGE / "lib")]


def extension_file() -> Path:
    """The extension module treadle._C, whose functions generated bindings call."""
    return PACKAGE / f"_C{operator_library.EXTENSION_SUFFIX}"


def compile_flags() -> list[str]:
    """The flags that every source is compiled with."""
    return [*FLAGS, *(f"-isystem{path}" for path in include_paths())]


def link_flags() -> list[str]:
    """The flags that every extension is linked with: Treadle's two libraries, loaded already, and
    that of PyTorch's stable ABI. The extension depends on those that it calls, so that one which
    calls the stable ABI alone runs on PyTorch, too."""
    library = PACKAGE / "lib"
    libraries = [
        library / "libtreadle.so",
        extension_file(),
        library / "stable_abi/libtorch_cpu.so",
    ]
    flags = ["-Wl,--push-state,--as-needed", *map(str, libraries), "-Wl,--pop-state"]
    return ["-shared", "-fopenmp", *flags]


def compiler() -> list[str]:
    """The command of the C++ compiler: $CXX, g++ or clang++. RuntimeError where there is none."""
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise CompilerError(f"expected a C++ compiler, got CXX={named[0]}, which was not found")
        return named
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise CompilerError(
        "expected a C++ compiler, got none: neither CXX nor g++ nor clang++ names one; install "
        "one with: apt-get install g++"
    )


@lru_cache(maxsize=None)
def version_of(command: tuple[str, ...]) -> str:
    """The compiler's name and version: another one makes other objects."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return done.stdout.partition("\n")[0]


def digest(*parts: object) -> str:
    """A short name for the parts' texts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A block that one process at a time is in, for a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# ---- compiling -----------------------------------------------------------------------------------


def compile_all(sources: Sequence[Path], folder: Path, options: Options) -> list[Path]:
    """The objects of the sources, in their order. CompilerError with what is wrong first."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *compiler(),
        *compile_flags(),
        *(f"-I{path}" for path in options.includes),
        *options.words("CXXFLAGS"),
        *options.cflags,
    ]
    with concurrent.futures.ThreadPoolExecutor(_workers(options)) as pool:
        jobs = [pool.submit(_compile, source, folder, command, options) for source in sources]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            for job in jobs:
                job.cancel()
            raise


def _workers(options: Options) -> int:
    jobs = options.environment.get("MAX_JOBS", "")
    if jobs and not (jobs.isdigit() and int(jobs) > 0):
        raise CompilerError(f"expected MAX_JOBS to be a number above 0, got {jobs}")
    return int(jobs) if jobs else os.cpu_count() or 1


def _compile(source: Path, folder: Path, command: list[str], options: Options) -> Path:
    stem = f"{source.stem}.{digest(source.resolve())[:8]}"
    target, record = folder / f"{stem}.o", folder / f"{stem}.json"
    dependencies = folder / f"{stem}.d"
    full = [*command, "-MMD", "-MF", str(dependencies), "-c", str(source), "-o", str(target)]
    key = digest(*full, version_of(tuple(compiler())), operator_library.stamp())
    if target.exists() and _is_current(record, key):
        return target
    record.unlink(missing_ok=True)
    _run(full, options)
    files = {path: contents_of(path) for path in _dependencies(dependencies)}
    record.write_text(json.dumps({"key": key, "files": files}))
    return target


def _is_current(record: Path, key: str) -> bool:
    try:
        known = json.loads(record.read_text())
    except (OSError, ValueError):
        return False
    return known["key"] == key and all(
        contents_of(path) == contents for path, contents in known["files"].items()
    )


def contents_of(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "gone"


def _dependencies(file: Path) -> list[str]:
    text = file.read_text().partition(":")[2].replace("\\\n", " ")
    return [path.replace("\\ ", " ") for path in re.split(r"(?<!\\)\s+", text) if path]


def link(objects: Sequence[Path], target: Path, options: Options) -> None:
    """Makes a shared library (or a program) of the objects, in one step for who looks at it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.{os.getpid()}")
    flags = link_flags()
    if options.standalone:
        library = PACKAGE / "lib"
        flags = ["-fopenmp", str(library / "libtreadle.so"), f"-Wl,-rpath,{library}"]
    words = [*map(str, objects), *flags, *options.words("LDFLAGS"), *options.ldflags]
    _run([*compiler(), *words, "-o", str(made)], options)
    os.replace(made, target)


def _run(command: list[str], options: Options) -> None:
    if options.verbose:
        sys.stdout.write(shlex.join(command) + "\n")
        sys.stdout.flush()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if options.verbose:
        sys.stdout.write(done.stdout + done.stderr)
        sys.stdout.flush()
    if done.returncode:
        raise CompilerError(first_error(done.stderr) or f"it ended with status {done.returncode}")


_ERROR = re.compile(r"^.*?(fatal error|error|undefined reference to)\b.*$", re.MULTILINE)


def first_error(text: str) -> Optional[str]:
    """The first error of a compiler or linker, with the line of the source that it shows."""
    found = _ERROR.search(text)
    if not found:
        return text.strip().partition("\n")[0] or None
    following = text[found.end() :].lstrip("\n").split("\n")[:2]
    shown = [line for line in following if re.match(r"^\s*(\d+ )?\|", line) or line[:1] == " "]
    return "\n".join([found.group(0), *shown])
