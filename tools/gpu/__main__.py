"""Tries the CUDA backend on a machine with a GPU, with the wheels of `./dev gpu`: tests,
sanitizers, training, and speed beside the PyTorch that is installed. The results are Markdown, for
docs/gpu.md.

    python3.12 tools/gpu                          # everything, in ten minutes
    python3.12 tools/gpu operators --seconds 500  # one part, with more time
    python3.12 tools/gpu --device cpu --quick     # tries the script itself out

It wants numpy, scipy, pytest, scikit-learn and tqdm, and no network. Each part has its own share of
the time; what a part did not come to is said. OUTPUT/gpu.md grows part by part, and OUTPUT/gpu.log
has all that programs printed.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path

import parts
import setting as settings
from setting import ROOT, Setting


def parser() -> argparse.ArgumentParser:
    names = ", ".join(part.name for part in parts.PARTS)
    made = argparse.ArgumentParser(
        prog="tools/gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("part", nargs="*", help=f"these parts only: {names}")
    made.add_argument("--seconds", type=float, default=570, help="for everything (default 570)")
    made.add_argument("--device", default="cuda", help="the device (default cuda)")
    made.add_argument("--quick", action="store_true", help="small sizes, to try the script out")
    made.add_argument("--pack", type=Path, default=ROOT / "build" / "gpu", help="the wheels")
    made.add_argument("--output", type=Path, default=ROOT / "build" / "gpu-results")
    return made


def chosen(names: list[str]) -> list[parts.Part]:
    """The parts of those names; all where none is named."""
    known = {part.name: part for part in parts.PARTS}
    for name in names:
        if name not in known:
            raise SystemExit(f"tools/gpu: expected a part ({', '.join(known)}), got {name}")
    return [known[name] for name in names] or list(parts.PARTS)


def main() -> int:
    args = parser().parse_args()
    begun = time.monotonic()
    wanted = chosen(args.part)
    args.output.mkdir(parents=True, exist_ok=True)
    package = settings.unpacked(args.pack)
    variables = settings.environment(package, args.output)
    place = Setting(args.device, package, args.output.resolve(), args.quick, variables)
    refusal = parts.missing_device(place)
    if refusal:
        print(f"tools/gpu: {refusal}", file=sys.stderr)
        return 1
    report = args.output / "gpu.md"
    day = datetime.date.today().isoformat()
    report.write_text(f"## Run of {day}\n\n{parts.description(place)}\n")
    failed = 0
    for number, part in enumerate(wanted):
        left = args.seconds - (time.monotonic() - begun)
        share = left * part.share / sum(later.share for later in wanted[number:])
        start = time.monotonic()
        print(f"{part.name}: at most {share:.0f} s ...", flush=True)
        result = part.run(place, share)
        failed += result.failed
        with report.open("a") as text:
            text.write(f"\n### {part.title}\n\n{result.text}\n")
        state = "failed" if result.failed else "done"
        print(f"{part.name}: {state} in {time.monotonic() - start:.0f} s", flush=True)
    print(report.read_text())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
