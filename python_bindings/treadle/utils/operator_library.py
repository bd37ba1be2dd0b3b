"""Operator libraries outside of Treadle: loaded only where they fit, and found by their names.

The package that `python -m treadle.codegen` makes calls `load` when it is imported. Its C++ code
was compiled against the headers of one Treadle and fits no other; the file says which, so that this
is known before anything of it runs.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import json
import mmap
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from treadle import _C

__all__ = ["OperatorLibrary", "Stamp", "libraries", "load", "load_file", "stamp", "stamp_of"]

PACKAGE = Path(__file__).parent.parent
EXTENSION_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
_MARK = b"treadle-library-stamp:"


class Stamp(NamedTuple):
    """The target of compiled C++ code: a version, and a name for the headers it saw."""

    version: str
    abi: str

    def __str__(self) -> str:
        return f"Treadle {self.version} (ABI {self.abi})"


def stamp() -> Stamp:
    """The stamp of this Treadle."""
    text = (PACKAGE / "include" / "treadle" / "stamp.h").read_text()
    values = dict(re.findall(r'#define TREADLE_(\w+) "([^"]*)"', text))
    return Stamp(values["VERSION"], values["ABI"])


def stamp_of(file: Union[str, Path]) -> Optional[Stamp]:
    """The stamp in a shared library's file; None where it has none."""
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = data.find(_MARK)
        if found < 0:
            return None
        text = data[found + len(_MARK) : found + len(_MARK) + 200]
    version, abi, *_ = text.split(b"\0")[0].decode(errors="replace").split(":")
    return Stamp(version, abi)


def check_stamp(name: str, file: Union[str, Path]) -> None:
    """Raises ImportError where the library in `file` was not built for this Treadle."""
    try:
        _C._require_whole_library(str(file))
    except RuntimeError as error:
        raise ImportError(f"{name}: {error}", name=name, path=str(file)) from None
    theirs, ours = stamp_of(file), stamp()
    if theirs is None:
        raise ImportError(
            f"{name}: expected a library built for {ours}, got a file without Treadle's stamp: "
            f"{file}",
            name=name,
            path=str(file),
        )
    if theirs != ours:
        raise ImportError(
            f"{name}: expected a library built for {ours}, got one built for {theirs}; "
            "build it again",
            name=name,
            path=str(file),
        )


@dataclass(frozen=True)
class OperatorLibrary:
    """A loaded library: `module` has its functions, `folder` what was generated for it."""

    name: str
    module: ModuleType = field(repr=False)
    folder: Path

    @cached_property
    def model(self) -> Mapping[str, Any]:
        """The model that schemac made of the library's YAML: {"operators": [...], ...}."""
        return json.loads((self.folder / "opmodel.json").read_text())


_libraries: dict[str, OperatorLibrary] = {}


def libraries() -> Mapping[str, OperatorLibrary]:
    """The libraries that this program has loaded, by name."""
    return dict(_libraries)


def load(package: str) -> ModuleType:
    """Imports the extension module of a generated package, and returns it.

    Raises ImportError where the package has none, where it was built for another Treadle, and where
    its operators cannot be registered.
    """
    file = f"{package}._C"
    spec = importlib.util.find_spec(file)
    if spec is None or spec.origin is None:
        raise ImportError(
            f"{package}: expected the extension module {file} beside the package's files, got "
            "none; compile the generated sources first",
            name=file,
        )
    check_stamp(package, spec.origin)
    try:
        module = importlib.import_module(file)
    except ImportError as error:
        raise _in_words(package, error) from None
    name = package.rpartition(".")[2]
    library = OperatorLibrary(name, module, Path(spec.origin).parent)
    entries = library.model["operators"]
    if any(d["kernel"].startswith("tvm_ffi:") for e in entries for d in e["dispatch"]):
        from treadle._library.tvm_ffi import register_entries

        try:
            register_entries(entries, library.folder)
        except (RuntimeError, ValueError) as error:
            raise ImportError(f"{package}: {error}", name=package, path=spec.origin) from None
    problems = list(kernel_problems(library.model["operators"]))
    if problems:
        more = f"\nand {len(problems) - 1} more such kernels" if problems[1:] else ""
        raise ImportError(f"{package}: {problems[0]}{more}", name=package, path=spec.origin)
    _libraries[name] = library
    return module


def kernel_problems(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Kernels for the CPU that an entry names and no file registers, and those that a file
    registers and no entry names."""
    from treadle import _C

    for entry in entries:
        if entry["kind"] not in ("kernel", "returns", "mutating"):
            continue
        overload = f".{entry['overload']}" if entry["overload"] else ""
        operator = f"{entry['namespace']}::{entry['name']}{overload}"
        cells = _C._describe_operator(operator)["cells"]
        made = sorted({c.get("name", "") for c in cells if c["device"] == "cpu"})
        named = [d for d in entry["dispatch"] if d["key"] == "CPU"]
        line = named[0]["line"] if named else entry["location"]["line"]
        place = f"{entry['location']['file']}:{line}"
        if named and made != [named[0]["kernel"]]:
            yield (
                f"expected a kernel '{named[0]['kernel']}' for {operator} on the CPU, as {place} "
                f"says, got {_in_quotes(made)}; register it with register_kernels, by this name"
            )
        if made and not named:
            yield (
                f"expected no kernel for {operator} on the CPU, since {place} names none, got "
                f"{_in_quotes(made)}; write 'CPU: {made[0]}' under 'dispatch'"
            )


def _in_quotes(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names) or "none"


def _in_words(package: str, error: ImportError) -> ImportError:
    """The error of a library that lacks a function, by the function's name in C++."""
    found = re.search(r"undefined symbol: (\w+)", str(error))
    if not found:
        return error
    # A function with the tag was declared in an operator's header
    # (codegen/templates/op_header.h.j2).
    function, tag, arguments = demangled(found.group(1)).partition("[abi:entry]")
    unseen = ", or its file does not include the header of the operator" if tag else ""
    return ImportError(
        f"{package}: expected a definition of {function}{arguments}, got none; a file with kernels "
        f"was not compiled with the others{unseen}, or the function is written with other "
        "arguments",
        name=error.name,
        path=error.path,
    )


def demangled(symbol: str) -> str:
    """A name of the C++ compiler's as it is written in C++."""
    library = ctypes.CDLL("libstdc++.so.6")
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value or not text:
        return symbol
    try:
        return ctypes.string_at(text).decode()
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def load_file(path: Union[str, Path]) -> None:
    """Loads a shared library that registers operators and has no module, for as long as the program
    runs.

    Raises ImportError where it was built for another Treadle, OSError where it cannot be loaded,
    and RuntimeError where what it registers is refused.
    """
    from treadle import _C

    path = Path(path).resolve()
    if stamp_of(path) is not None:
        check_stamp(path.name, path)
    _C._library_load(str(path))
    errors = _C._take_registration_errors()
    if errors:
        more = f"\nand {len(errors) - 1} more errors in registrations" if errors[1:] else ""
        raise RuntimeError(f"{path.name}: {errors[0]}{more}")
