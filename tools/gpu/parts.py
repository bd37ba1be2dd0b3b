"""The parts of a run: what each does, its share of the time, and its results as Markdown."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import beside
from setting import PROGRAMS, ROOT, Outcome, Setting

# The tests of every operator, whose tensors are made on the device.
OPERATORS = [
    "tests/python/operators/test_operators.py",
    "tests/python/autograd/test_gradients.py",
    "tests/python/amp/test_amp_policies.py",
]


@dataclass(frozen=True)
class Result:
    """Markdown, and whether something that had to hold did not."""

    text: str
    failed: bool


@dataclass(frozen=True)
class Part:
    """`share`: of the time, in proportion to the others' shares."""

    name: str
    title: str
    share: float
    run: Callable[[Setting, float], Result]


def missing_device(place: Setting) -> str:
    """Why there is no such device; '' where there is one."""
    ask = f"import treadle; treadle.empty(1, device={place.device!r})"
    outcome = place.run([sys.executable, "-c", ask], 120, "device")
    if outcome.status == 0:
        return ""
    return f"expected {place.device} to be there, got: {outcome.last}"


def description(place: Setting) -> str:
    """The device, its driver, and the releases that took part."""
    lines = [f"* device: {place.device}"]
    if place.device == "cuda" and shutil.which("nvidia-smi"):
        query = "--query-gpu=name,memory.total,driver_version,compute_cap"
        told = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True
        )
        lines = [f"* device: {told.stdout.strip()} (name, memory, driver, compute capability)"]
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%h"], capture_output=True, text=True
    )
    if commit.returncode == 0:
        lines.append(f"* tree: {commit.stdout.strip()}")
    lines.append(f"* Python {'.'.join(map(str, sys.version_info[:3]))}")
    if place.quick:
        lines.append("* small sizes: figures mean nothing")
    return "\n".join(lines) + "\n"


def _pytest(place: Setting, paths: list[str], seconds: float, title: str, many: bool) -> Result:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    if many and importlib.util.find_spec("xdist"):
        command += ["-n", str(min(12, os.cpu_count() or 1))]
    command += ["-m", "not slow", "--device", place.device]
    if place.quick and many:
        command += ["-k", "softmax or add"]
    outcome = place.run([*command, *paths], seconds, title)
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", outcome.text, re.MULTILINE)
    ended = outcome.last.strip("= ")
    if outcome.status is None:
        # Lines of dots, with a letter for a test that did not pass.
        dots = "".join(re.findall(r"^([.FEsx]+)(?: +\[ *\d+%\])?$", outcome.text, re.MULTILINE))
        ended = f"{dots.count('.')} passed and {dots.count('F') + dots.count('E')} failed till then"
    shown = [f"* `{' '.join(paths)}`: {outcome.said}: {ended}"]
    shown += [f"  * {name}" for name in failures[:30]]
    if len(failures) > 30:
        shown.append(f"  * and {len(failures) - 30} more")
    return Result("\n".join(shown), outcome.status != 0)


def on_device(place: Setting, seconds: float) -> Result:
    """Tests that need a device, those of tests/gpu."""
    if place.device != "cuda":
        return Result("Not for this device.", False)
    paths = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests/gpu").glob("*.py"))]
    return _pytest(place, paths, seconds, "on_device", many=False)


def operators(place: Setting, seconds: float) -> Result:
    return _pytest(place, OPERATORS, seconds, "operators", many=True)


def _every_operator(place: Setting, seconds: float) -> list[str]:
    """The command that calls every operator, and stops by itself before its time is over."""
    command = [sys.executable, str(PROGRAMS / "every_operator.py"), "--device", place.device]
    return [*command, "--seconds", str(seconds)] + (["--only", "add"] if place.quick else [])


def _told(outcome: Outcome) -> dict[str, str]:
    """The words of every_operator.py on each operator."""
    lines = [line.split(" ", 1) for line in outcome.text.splitlines() if line.startswith("aten::")]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def determinism(place: Setting, seconds: float) -> Result:
    """Each operator's results in two processes, by their bits."""
    half = seconds / 2
    first, second = (
        place.run(_every_operator(place, half - 10), half, f"determinism {i}") for i in (1, 2)
    )
    a, b = _told(first), _told(second)
    differ = sorted(name for name in a.keys() & b.keys() if a[name] != b[name])
    failed = bool(differ) or first.status != 0 or second.status != 0 or not a
    text = f"* {len(a.keys() & b.keys())} operators called in two processes: {len(differ)} differ"
    text += "".join(f"\n  * {name}: {a[name]}, then {b[name]}" for name in differ[:30])
    if first.status != 0 or second.status != 0:
        text += f"\n* {first.said}, then {second.said}: {(first if first.status else second).last}"
    return Result(text, failed)


def sanitizers(place: Setting, seconds: float) -> Result:
    """The operators that time allows, under compute-sanitizer."""
    program = _sanitizer()
    if program is None or place.device != "cuda":
        return Result("Not run: compute-sanitizer was not found, or this is not CUDA.", False)
    lines, failed = [], False
    for tool in ("memcheck", "racecheck"):
        limit = seconds / 2
        command = [program, "--tool", tool, "--error-exitcode", "9"]
        # A tensor's memory is an allocation of its own, outside of which nothing is to be touched.
        own = {"TREADLE_CUDA_KEEP_MEMORY": "0"}
        outcome = place.run([*command, *_every_operator(place, 0.6 * limit)], limit, tool, **own)
        summary = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY.*)", outcome.text)
        failed |= outcome.status != 0
        ended = summary[-1] if summary else outcome.last
        lines.append(f"* {tool}, {len(_told(outcome))} operators: {outcome.said}: {ended}")
    return Result("\n".join(lines), failed)


def _sanitizer() -> str | None:
    toolkit = Path("/usr/local/cuda/bin/compute-sanitizer")
    return shutil.which("compute-sanitizer") or (str(toolkit) if toolkit.exists() else None)


def digits(place: Setting, seconds: float) -> Result:
    command = [*place.treadle, str(PROGRAMS / "digits.py"), "--device", place.device]
    outcome = place.run(command + (["--epochs", "2"] if place.quick else []), seconds, "digits")
    shown = [line for line in outcome.text.splitlines() if line.startswith("* ")]
    shown = shown if outcome.status == 0 else [f"* {outcome.said}: {outcome.last}", *shown]
    return Result("\n".join(shown), outcome.status != 0)


def timeline(place: Setting, seconds: float) -> Result:
    command = [*place.treadle, str(PROGRAMS / "busy.py"), "--device", place.device]
    command += ["--trace", str(place.output / "resnet50.json.gz")]
    outcome = place.run(command + (["--quick"] if place.quick else []), seconds, "timeline")
    return Result(f"* {outcome.said}: {outcome.last}", outcome.status != 0)


def kernels(place: Setting, seconds: float) -> Result:
    return Result(beside.kernels(place, seconds), False)


def models(place: Setting, seconds: float) -> Result:
    return Result(beside.models(place, seconds), False)


PARTS = (
    Part("on_device", "Tests that need a device", 40, on_device),
    Part("operators", "Operators and their gradients", 150, operators),
    Part("determinism", "The same bits in another run", 50, determinism),
    Part("sanitizers", "compute-sanitizer", 70, sanitizers),
    Part("digits", "The digits network", 25, digits),
    Part("timeline", "How busy a ResNet-50 keeps the device", 25, timeline),
    Part("kernels", "Kernels beside PyTorch", 70, kernels),
    Part("models", "Training beside PyTorch", 140, models),
)
