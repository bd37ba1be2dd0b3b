"""Small plug-ins for tests: built from a text by a compiler on the PATH, loaded here or in a
program.

    path = build(folder, "broken", C_PLUGIN.format(...))
    with pytest.raises(RuntimeError): treadle.load_backend(path)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Callable, Mapping, Optional, Sequence

import treadle
from source_tree import ROOT, SUPPORT
from treadle.utils.cpp_extension import include_paths

MINIMAL = ROOT / "examples" / "backends" / "minimal" / "minimal.cc"
# The headers of the installed package; nothing of the tree.
INCLUDE = include_paths()[0]

# A whole plug-in in C; `start` is the body of its start function, `before` what stands before it.
C_PLUGIN = """
#include <stdlib.h>
#include <string.h>
#include <treadle/plugin.h>

{before}

static treadle_status start(const treadle_api* api) {{
  (void)api;
  {start}
}}
static const treadle_plugin plugin = {{sizeof(treadle_plugin), {version}, "{name}", "1.0", &start}};
TREADLE_PLUGIN_EXPORT const treadle_plugin* treadle_plugin_entry(void) {{ return &plugin; }}
"""

# For `before`: a backend in host memory, as `backend`.
C_BACKEND = """
static treadle_status allocate(void* c, int32_t index, size_t nbytes, void** storage) {
  (void)c, (void)index;
  *storage = malloc(nbytes);
  return *storage ? TREADLE_OK : TREADLE_OUT_OF_MEMORY;
}
static void deallocate(void* c, int32_t index, void* storage, size_t nbytes) {
  (void)c, (void)index, (void)nbytes;
  free(storage);
}
static treadle_status copy(void* c, treadle_place to, treadle_place from, size_t nbytes,
                           int32_t non_blocking) {
  (void)c, (void)non_blocking;
  memmove((char*)to.storage + to.offset, (char*)from.storage + from.offset, nbytes);
  return TREADLE_OK;
}
static treadle_backend backend_named(const char* name) {
  treadle_backend b;
  memset(&b, 0, sizeof b);
  b.size = sizeof b;
  b.flags = TREADLE_HOST_VISIBLE;
  b.name = name;
  b.allocate = &allocate;
  b.deallocate = &deallocate;
  b.copy = &copy;
  return b;
}
"""


def c_plugin(name: str, start: str, *, before: str = "", version: object = 1) -> str:
    """The text of a plug-in in C."""
    return C_PLUGIN.format(name=name, start=start, before=before, version=version)


def build(
    folder: Path,
    name: str,
    source: str,
    *,
    suffix: str = ".c",
    compiler: Optional[str] = None,
    include: object = INCLUDE,
    flags: Sequence[str] = (),
) -> str:
    """The path of the shared library made of a text, warnings being errors."""
    text = folder / f"{name}{suffix}"
    text.write_text(source)
    return build_file(folder / f"{name}.so", text, compiler=compiler, include=include, flags=flags)


def build_file(
    target: Path,
    source: Path,
    *,
    compiler: Optional[str] = None,
    include: object = INCLUDE,
    flags: Sequence[str] = (),
) -> str:
    """The path of the shared library made of a file in C or C++."""
    in_c = source.suffix == ".c"
    if compiler is None:
        compiler = os.environ.get("CC" if in_c else "CXX", "cc" if in_c else "c++")
    command = [
        compiler,
        "-std=c11" if in_c else "-std=c++17",
        *("-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"),
        f"-I{include}",
        *flags,
        str(source),
        "-o",
        str(target),
    ]
    # The sanitizers' libraries are preloaded for what is tested, not for the compiler.
    own = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(target)


def build_minimal(target: Path, *, name: str = "minimal", handles: bool = False) -> str:
    """The path of the minimal backend under a name; `handles`: its storages are no addresses. A
    backend built once of the same sources is only copied.
    """
    flags = [f'-DTREADLE_MINIMAL_NAME="{name}"', "-O1"]
    if handles:
        flags.append("-DTREADLE_MINIMAL_HANDLES")
    sources = [MINIMAL, *sorted((Path(INCLUDE) / "treadle").rglob("*.h*"))]
    contents = hashlib.sha256(repr([path.read_bytes() for path in sources]).encode())
    contents.update(repr((flags, os.environ.get("CXX"))).encode())
    kept = ROOT / "build" / "minimal_backends" / f"{contents.hexdigest()[:16]}.so"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        build_file(target, MINIMAL, flags=flags)
        made = kept.with_name(f"{kept.name}.{os.getpid()}")
        shutil.copy(target, made)
        os.replace(made, kept)
    shutil.copy(kept, target)
    return str(target)


def compilers(*names: str) -> list[str]:
    """Those of the compilers that are there."""
    return [name for name in names if shutil.which(name)]


def alone(test: Callable[..., None]) -> Callable[..., None]:
    """A test that runs in a process of its own, with paths for arguments: for what loads backends,
    as they stay."""
    name = f"{test.__module__}.{test.__name__}.__wrapped__"

    @functools.wraps(test)
    def run(**paths: str) -> None:
        folders = [str(Path(inspect.getfile(test)).parent), str(SUPPORT)]
        program = f"import sys; sys.path[:0] = {folders!r}; import {test.__module__}; "
        run_program(program + f"{name}(**{ {k: str(v) for k, v in paths.items()}!r})")

    return run


def run_program(
    text: str,
    *arguments: str,
    cwd: Optional[Path] = None,
    search: Sequence[str] = (),
    environment: Optional[Mapping[str, str]] = None,
) -> str:
    """The output of a program in a process of its own: what it registers is gone with it.
    `search`: folders on its path; `environment`: what is set beside that of this process."""
    package = str(Path(treadle.__file__).resolve().parents[1])
    searched = [str(Path(treadle.__file__).parents[1]), package, *search]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(searched)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
