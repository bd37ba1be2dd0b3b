"""The checker of kernels: lines, planted faults of each kind, right kernels, and the command."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from treadle_testing.kernels.checker import Checker, Report
from treadle_testing.kernels.line import parse

FOLDER = Path(__file__).with_name("faulty_kernels")
KERNELS = FOLDER / "kernels.py"

# The operator, the kernel, and the kind of the finding.
FAULTS = [
    ("relu", "relu_off_by_one", "crash"),
    ("relu", "relu_before_its_output", "writes outside"),
    ("relu", "relu_reads_one_more", "crash"),
    ("relu", "relu_without_strides", "wrong value"),
    ("relu", "relu_tail", "wrong value"),
    ("relu", "relu_nan", "wrong value"),
    ("relu", "relu_transposed", "wrong value"),
    ("relu", "relu_empty", "crash"),
    ("relu", "relu_32_bits", "crash"),
    ("relu", "relu_changes_input", "changes an input"),
    ("relu", "relu_unwritten", "wrong value"),
    ("relu", "relu_fresh_memory", "depends on memory outside"),
    ("relu", "relu_leak", "leak"),
    ("relu", "relu_one_scratch", "calls at once disturb each other"),
    ("relu", "relu_of_dtype", "wrong dtype"),
    ("relu", "relu_by_reference", "calls its reference"),
    ("relu", "relu_by_shape", "depends on an earlier call"),
    ("relu", "relu_by_address", "depends on an earlier call"),
    ("exp", "exp_drift", "wrong value"),
    ("neg", "neg_zero", "wrong value"),
    ("cumsum", "cumsum_in_place", "wrong value"),
    ("sum", "sum_order", "bits depend on the number of threads"),
    ("sum", "sum_race", "different bits in repeated calls"),
    ("softmax.int", "softmax_batch", "bits depend on the batch"),
    ("sin", "SinGradient.apply", "wrong gradient"),
    ("sin", "SinSecondGradient.apply", "wrong second gradient"),
]
# Lines that take the place of the samples, for kernels of some shapes only.
LINES = {"cumsum": ["cumsum f32 [5], 0"], "softmax.int": ["softmax.int f32 [3,5], 1"]}


@pytest.fixture(scope="module")
def checker(tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    library = tmp_path_factory.mktemp("faults") / "libfaults.so"
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread"]
        + [str(FOLDER / "faults.cc"), "-o", str(library)],
        check=True,
    )
    os.environ["FAULTS"] = str(library)
    try:
        with Checker() as made:
            yield made
    finally:
        del os.environ["FAULTS"]


def _kinds(checker, operator, kernel, wanted, seconds):
    """The kinds of findings, until one is the wanted one."""
    report = Report(operator, checker.open(operator, f"{KERNELS}:{kernel}"))
    kinds = []
    end = time.monotonic() + seconds
    for finding in checker.findings(report, LINES.get(operator, ()), dtypes=["float32"], end=end):
        kinds.append(finding.kind)
        if finding.kind == wanted:
            break
    return kinds


@pytest.mark.slow
def test_planted_faults_are_found(checker):
    missed = {}
    for operator, kernel, wanted in FAULTS:
        kinds = _kinds(checker, operator, kernel, wanted, 20)
        if wanted not in kinds:
            missed[kernel] = kinds
    assert not missed


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
