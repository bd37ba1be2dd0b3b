"""Links a smaller OpenBLAS for the wheel from OpenBLAS's static library.

The shared library of a distribution has all of LAPACK, and kernels for 20 kinds of x86 processors:
a third of the wheel. The subset has the routines that a program calls and what they call. Kernels
are left out for processors that were sold before 2013 and for AMD's of the Bulldozer line; those
processors run the kernels of an older relative, whose instructions they all have. The other
processors run the same machine code as with the whole library.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
from pathlib import Path

SONAME = "libopenblas.so.0"

# OpenBLAS calls kernels through a table per processor, `gotoblas_<processor>`. The tables on the
# right become other names of the table on the left.
SHARED_TABLES = {
    "PRESCOTT": (
        "CORE2", "PENRYN", "DUNNINGTON", "NEHALEM", "ATOM", "NANO",
        "OPTERON", "OPTERON_SSE3", "BARCELONA", "BOBCAT",
    ),
    "SANDYBRIDGE": ("BULLDOZER", "PILEDRIVER", "STEAMROLLER", "EXCAVATOR"),
}  # fmt: skip


def symbols(file: Path, *options: str) -> set[str]:
    """The names that nm lists, without their versions."""
    text = subprocess.run(
        ["nm", *options, file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout
    lines = (line.split() for line in text.splitlines())
    return {words[-1].partition("@")[0] for words in lines if len(words) > 1}


def index(archive: Path) -> set[str]:
    """The names that the index of an archive has, which the linker reads: nm would read each of its
    thousands of members. The index is the first member: a count and as many offsets, of four bytes
    each, then the names, each with a zero."""
    with archive.open("rb") as file:
        magic, header = file.read(8), file.read(60)
        if magic != b"!<arch>\n" or header[:16].rstrip() != b"/":
            return symbols(archive, "--defined-only")
        content = file.read(int(header[48:58]))
    names = content[4 + 4 * int.from_bytes(content[:4], "big") :]
    return {name.decode() for name in names.split(b"\0")}


def resolved_libraries(program: Path) -> dict[str, Path]:
    """The files that the loader takes for the shared libraries of a program, by their names."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = (line.split() for line in text.splitlines() if "=> /" in line)
    return {words[0]: Path(words[2]).resolve() for words in found}


def runtime_of_fortran(libraries: dict[str, Path]) -> list[Path]:
    """The run-time library of Fortran to link with: the static one where the compiler has it, of
    which LAPACK needs one function, else the shared one; none where OpenBLAS has no Fortran."""
    shared = [libraries[name] for name in libraries if name.startswith("libgfortran.so")]
    command = ["c++", "-print-file-name=libgfortran.a"]
    static = Path(subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip())
    return [static] if shared and static.is_absolute() else shared


def shared_tables(defined: set[str]) -> list[str]:
    """Options of the linker that give several processors one table, where the library has both."""
    pairs = [(other, kept) for kept, others in SHARED_TABLES.items() for other in others]
    return [
        f"-Wl,--defsym=gotoblas_{other}=gotoblas_{kept}"
        for other, kept in pairs
        if {f"gotoblas_{other}", f"gotoblas_{kept}"} <= defined
    ]


def link(program: Path, folder: Path) -> Path | None:
    """Links the subset that `program`, a shared library, calls.

    The result is `folder`/libopenblas.so.0, or None where `program` does not call OpenBLAS or the
    system has no static library of OpenBLAS beside the shared one.
    """
    libraries = resolved_libraries(program)
    whole = libraries.get(SONAME)
    if whole is None or not (archive := whole.parent / "libopenblas.a").exists():
        return None
    called = sorted(
        symbols(program, "-D", "--undefined-only") & symbols(whole, "-D", "--defined-only")
    )
    exports = folder / "exports"
    exports.write_text("{ global: " + " ".join(f"{name};" for name in called) + " local: *; };\n")
    subset = folder / SONAME
    command = ["c++", "-shared", "-fuse-ld=bfd", "-s", "-o", subset, f"-Wl,-soname,{SONAME}"]
    command += ["-Wl,--gc-sections", "-Wl,--build-id=none", f"-Wl,--version-script={exports}"]
    command += [f"-Wl,--undefined={name}" for name in called]
    command += shared_tables(index(archive))
    command += [archive, *runtime_of_fortran(libraries), "-lgomp", "-lpthread", "-lm"]
    subprocess.run(command, check=True)
    exports.unlink()
    return subset
