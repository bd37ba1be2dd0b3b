"""./dev test: the C++ tests by Bazel, pytest against the package just built, and, where the CUDA
toolkit is, some of the tests of devices on an emulated CUDA device; then the checks of the sources
and the documentation (./dev lint, ./dev docs); and one total.

The last line counts test cases of all: `1234 passed, 0 failed`. `./dev test --emulated` runs every
test of operators, gradients and devices on the emulated one, or the files that are named.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import json
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Optional
from urllib.parse import unquote, urlparse

import bazel
import docs
import environment
import passed
import sources
from ui import ROOT, DevError, run, say, step

# The tests that are built for 64-bit Arm.
AARCH64_TARGETS = ["//core/...", "//aten:all"]

# Bazel's exit statuses that are about tests, not the build: some failed; none were found.
TESTS_FAILED, NO_TESTS = 3, 4

EMULATOR = "tests/cuda_emulator:libtreadle_cuda_emulated.so"
OPERATORS = "tests/python/operators/test_operators.py"
DEVICE_TESTS = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests/gpu").glob("*.py"))]
# The tests that run there: those of operators make tensors on the device, those of devices where
# they say, so that these are another process's.
EMULATED = ([OPERATORS, "tests/python/autograd/test_gradients.py"], DEVICE_TESTS)
# And what is a part of every whole run: values in a few dtypes, and what is computed by the longest
# way round.
EMULATED_ALWAYS = "test_reference and (float32 or bfloat16 or int64 or bool or complex64)"
DEVICE_TESTS_ALWAYS = ["tests/gpu/on_convolutions.py", "tests/gpu/on_recurrent.py"]


class Count:
    """How many test cases passed, failed and were skipped."""

    def __init__(self, passed: int = 0, failed: int = 0, skipped: int = 0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", help="only these Python test files or folders")
    parser.add_argument("--asan", action="store_true", help="with the address and UB sanitizers")
    parser.add_argument(
        "--aarch64", action="store_true", help="the C++ tests of core and aten on emulated Arm"
    )
    parser.add_argument("--fast", action="store_true", help="leave out the tests marked slow")
    parser.add_argument("--cpp", action="store_true", help="the C++ tests only")
    parser.add_argument("--python", action="store_true", help="the Python tests only")
    parser.add_argument(
        "--emulated", action="store_true", help="tests of operators on an emulated CUDA device"
    )
    parser.add_argument(
        "--fences",
        action="store_true",
        help="with --emulated: stop where a kernel goes behind a tensor's memory",
    )
    parser.add_argument("-k", metavar="NAME", help="tests whose name contains NAME")
    parser.add_argument("-x", action="store_true", help="stop at the first Python test that fails")
    parser.add_argument(
        "--again", action="store_true", help="run Python tests that passed when nothing was changed"
    )


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    if args.aarch64:
        environment.aarch64()
    config = bazel.Config("aarch64" if args.aarch64 else "asan" if args.asan else "")
    total = Count()
    if args.emulated:
        for paths in [args.paths] if args.paths else EMULATED:
            total.add(run_emulated(args, paths))
        print(total)
        return 1 if total.failed else 0
    if not args.python and not args.paths:
        with step("C++ tests"):
            count = run_cpp(config, args)
        say(f"C++ tests: {count}")
        total.add(count)
    if not (args.cpp or args.aarch64):
        package = bazel.build_package(config)
        with step("Python tests"):
            count = run_python(config, package, args)
        say(f"Python tests: {count}")
        total.add(count)
    if not (
        args.cpp or args.aarch64 or args.python or args.paths or args.k or args.asan or args.fast
    ):
        if has_cuda_toolkit():
            total.add(run_emulated(args, DEVICE_TESTS_ALWAYS))
            args.k = EMULATED_ALWAYS
            total.add(run_emulated(args, [OPERATORS]))
        else:
            say("without the CUDA toolkit there are no tests on an emulated CUDA device")
        total.add(run_checks("./dev lint", sources.all_problems))
        package = bazel.build_package(config)
        variables = python_environment(config, package)
        total.add(run_checks("./dev docs", lambda: docs.build(package, variables)))
    print(total)
    return 1 if total.failed else 0


def run_checks(name: str, check: Callable[[], list[str]]) -> Count:
    """Checks that are not tests: a problem is counted as a failed test, none as one passed."""
    try:
        problems = check()
    except DevError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem)
    say(f"{name}: {len(problems)} problems")
    return Count(passed=0 if problems else 1, failed=len(problems))


def run_cpp(config: bazel.Config, args: argparse.Namespace) -> Count:
    """Runs every cc_test; cases are counted from the XML that GoogleTest writes."""
    events = ROOT / "build" / "test" / "events.json"
    events.parent.mkdir(parents=True, exist_ok=True)
    options = ["--keep_going", "--build_tests_only", f"--build_event_json_file={events}"]
    if args.fast:
        options.append("--test_size_filters=small,medium")
    targets = AARCH64_TARGETS if args.aarch64 else ["//..."]
    if args.k:
        options.append(f"--test_filter=*{args.k}*")
        targets = targets_with(args.k)
        if args.aarch64:
            targets = [t for t in targets if t.startswith(("//core:", "//core/", "//aten:"))]
        if not targets:
            return Count()
    status = bazel.bazel("test", *config.options, *options, *targets)
    if status not in (0, TESTS_FAILED, NO_TESTS):
        raise DevError("the tests could not be built; the first error above says why", status)
    count = Count()
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if "testResult" in event.get("id", {}) and "testResult" in event:
            label = event["id"]["testResult"]["label"]
            cases = count_target(label, event["testResult"])
            if str(cases) == str(Count()) and not args.k:
                say(f"{label}: no test ran")
                cases.failed = 1
            count.add(cases)
    if status == TESTS_FAILED and not count.failed:
        count.failed = 1
    return count


def targets_with(name: str) -> list[str]:
    """The test programs whose source has the name of a test, so that no others are built."""
    found = []
    for source in sources.files({".cc"}):
        if not source.name.endswith("_test.cc"):
            continue
        text = source.read_text()
        if all(part in text for part in name.split(".")):
            package = next(p for p in source.parents if (p / "BUILD.bazel").exists())
            program = str(source.relative_to(package).with_suffix("")).replace("/", "_")
            found.append(f"//{package.relative_to(ROOT)}:{program}")
    return found


def count_target(label: str, result: dict) -> Count:
    """The cases of one test program; one that died counts as one failure more."""
    count = Count()
    for output in result.get("testActionOutput", []):
        if output["name"] == "test.xml":
            count = count_xml(Path(unquote(urlparse(output["uri"]).path)))
    if result["status"] != "PASSED" and not count.failed:
        say(f"{label}: {result['status'].lower()}")
        count.failed = 1
    return count


def count_xml(path: Path) -> Count:
    """Counts the cases of a JUnit file."""
    count = Count()
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return count
    for case in cases:
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
        elif case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed"):
            count.skipped += 1
        else:
            count.passed += 1
    return count


def run_python(config: bazel.Config, package: Path, args: argparse.Namespace) -> Count:
    """Runs pytest against the package in `package`."""
    variables = python_environment(config, package) | {"OMP_WAIT_POLICY": "passive"}
    key = None
    if not (args.paths or args.k):
        key = passed.fingerprint(package, (config.name, args.fast))
    return run_pytest(args, args.paths, variables, key)


def run_emulated(args: argparse.Namespace, paths: list[str]) -> Count:
    """Runs tests with the emulator (tests/cuda_emulator) as the device cuda."""
    package = bazel.build_package(bazel.Config())
    library = bazel.build(bazel.Config("cuda"), f"//{EMULATOR}") / EMULATOR.replace(":", "/")
    variables = python_environment(bazel.Config(), package) | {
        "OMP_WAIT_POLICY": "passive",
        "TREADLE_CUDA_CACHE": str(ROOT / "build" / "emulated-kernels"),
    }
    if args.fences:
        variables |= {"TREADLE_CUDA_KEEP_MEMORY": "0", "TREADLE_EMULATOR_FENCES": "1"}
    options = ["--device", "cuda", "--backend", str(library)]
    key = passed.fingerprint(package, (paths, args.k, args.fast, args.fences))
    with step("Tests on an emulated CUDA device"):
        count = run_pytest(args, paths, variables, key, options)
    say(f"tests on an emulated CUDA device: {count}")
    return count


def has_cuda_toolkit() -> bool:
    """Whether --config=cuda finds what it builds with: tools/bazel/cuda_toolkit.bzl says."""
    asked = subprocess.run(["bazel", "query", "@cuda//:headers"], cwd=ROOT, capture_output=True)
    return asked.returncode == 0


def run_pytest(
    args: argparse.Namespace,
    paths: list[str],
    variables: dict[str, str],
    key: Optional[str],
    options: Sequence[str] = (),
) -> Count:
    """Runs pytest; what `key` stands for and passed before is not run again."""
    if not args.again and (before := passed.known(key)):
        say("nothing changed since the Python tests passed; --again runs them all the same")
        return Count(**before)
    report = ROOT / "build" / "test" / "pytest.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [str(environment.PYTHON), "-m", "pytest", "-q", f"--junitxml={report}", *options]
    if args.fast:
        command += ["-m", "not slow"]
    if args.k:
        command += ["-k", args.k]
    if args.x:
        command.append("-x")
    if not args.paths:
        # The whole suite in a process for each core; they share the cores without waiting busily.
        command += ["-n", "auto", "--dist", "worksteal"]
    status = run([*command, *(paths or ["tests"])], env=variables)
    count = count_xml(report)
    # 5: nothing was selected, which is no failure when a name was asked for.
    if status not in (0, 5) and not count.failed:
        say(f"pytest ended with status {status}")
        count.failed = 1
    if not count.failed:
        passed.keep(key, vars(count))
    return count


def python_environment(config: bazel.Config, package: Path) -> dict[str, str]:
    """The environment in which the built package runs, and where tests find what was built."""
    variables = {
        "PYTHONPATH": str(package),
        "TREADLE_SOURCE": str(ROOT),
        "TREADLE_SCHEMAC": str((ROOT / "bazel-bin" / "codegen" / "schemac" / "schemac").resolve()),
    }
    if config.name == "asan":
        libraries = [
            str((ROOT / "bazel-bin" / "tools" / "sanitizers" / "throwing_new.so").resolve()),
            runtime_library("libasan.so"),
            runtime_library("libubsan.so"),
        ]
        variables |= {
            "LD_PRELOAD": " ".join(libraries),
            # Python itself keeps memory until it exits. No address space can be limited, so
            # requests are, which tests of hostile arguments rely on.
            "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1:allocator_may_return_null=1"
            ":max_allocation_size_mb=1024:verify_asan_link_order=0",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "TREADLE_SANITIZERS": "1",
        }
    if config.name == "tsan":
        variables |= {
            "LD_PRELOAD": runtime_library("libtsan.so"),
            # Python's own code, and the libraries that are not built here, are not instrumented.
            "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:second_deadlock_stack=1:history_size=4"
            f":suppressions={ROOT / 'tools' / 'sanitizers' / 'threads.txt'}",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TREADLE_SANITIZERS": "1",
        }
    return variables


def runtime_library(name: str) -> str:
    """A run-time library of the compiler."""
    path = subprocess.run(
        ["gcc", f"-print-file-name={name}"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    return str(Path(path).resolve())
