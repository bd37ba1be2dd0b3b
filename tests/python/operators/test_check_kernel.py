"""The checker of kernels: lines, planted faults of each kind, right kernels, and the command."""

# SPDX-License-Identifier: Apache-2.0

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from treadle.__main__ import main
from treadle_testing.kernels.checker import Checker, Report
from treadle_testing.kernels.line import parse

FOLDER = Path(__file__).with_name("faulty_kernels")
KERNELS = FOLDER / "kernels.py"

# The operator, the kernel, and the kind of the finding; with a line, that alone is checked, where
# the lines before it take long.
FAULTS = [
    ("relu", "relu_off_by_one", "crash"),
    ("relu", "relu_before_its_output", "writes outside"),
    ("relu", "relu_reads_one_more", "crash"),
    ("relu", "relu_without_strides", "wrong value"),
    ("relu", "relu_tail", "wrong value"),
    ("relu", "relu_nan", "wrong value"),
    ("relu", "relu_transposed", "wrong value"),
    ("relu", "relu_empty", "crash"),
    ("relu", "relu_32_bits", "crash", "relu f32 [3,4] s[2147483656,1]"),
    ("relu", "relu_changes_input", "changes an input"),
    ("relu", "relu_unwritten", "wrong value"),
    ("relu", "relu_fresh_memory", "depends on memory outside"),
    ("relu", "relu_leak", "leak", "relu f32 [3,4] | leak"),
    (
        "relu",
        "relu_one_scratch",
        "calls at once disturb each other",
        "relu f32 [3001] | concurrent",
    ),
    ("relu", "relu_of_dtype", "wrong dtype"),
    ("relu", "relu_by_reference", "calls its reference"),
    ("relu", "relu_by_shape", "depends on an earlier call"),
    ("relu", "relu_by_address", "depends on an earlier call"),
    ("exp", "exp_drift", "wrong value"),
    ("neg", "neg_zero", "wrong value", "neg f32 [5] zeros"),
    ("cumsum", "cumsum_in_place", "wrong value"),
    ("sum", "sum_order", "bits depend on the number of threads", "sum f32 [100003] | threads"),
    ("sum", "sum_race", "different bits in repeated calls", "sum f32 [100003] | threads"),
    ("softmax.int", "softmax_batch", "bits depend on the batch"),
    ("sin", "SinGradient.apply", "wrong gradient", "sin f64 [5] | gradients"),
    ("sin", "SinSecondGradient.apply", "wrong second gradient", "sin f64 [5] | second"),
]
# Lines that take the place of the samples, for kernels of some shapes only.
LINES = {"cumsum": ["cumsum f32 [5], 0"], "softmax.int": ["softmax.int f32 [3,5], 1"]}


@pytest.fixture(scope="module")
def checker(tmp_path_factory):
    library = tmp_path_factory.mktemp("faults") / "libfaults.so"
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread"]
        + [str(FOLDER / "faults.cc"), "-o", str(library)],
        check=True,
    )
    os.environ["FAULTS"] = str(library)
    try:
        with Checker() as made:
            yield made
    finally:
        del os.environ["FAULTS"]


def _kinds(checker, operator, kernel, wanted, line=None):
    """The kinds of findings, until one is the wanted one."""
    report = Report(operator, checker.open(operator, f"{KERNELS}:{kernel}"))
    kinds = []
    lines = [line] if line else LINES.get(operator, ())
    end = time.monotonic() + 20
    for finding in checker.findings(report, lines, bool(line), ["float32"], end):
        kinds.append(finding.kind)
        if finding.kind == wanted:
            break
    return kinds


@pytest.mark.slow
def test_planted_faults_are_found(checker):
    missed = {}
    for operator, kernel, wanted, *line in FAULTS:
        kinds = _kinds(checker, operator, kernel, wanted, *line)
        if wanted not in kinds:
            missed[kernel] = kinds
    assert not missed


@pytest.mark.slow
def test_right_kernels_have_no_findings(checker):
    for operator, kernel, samples in (
        ("relu", "relu_right", []),
        ("cumsum", "cumsum_right", LINES["cumsum"]),
        ("sin", "Sin.apply", []),
    ):
        report = checker.check(
            operator,
            f"{KERNELS}:{kernel}",
            seconds=60,
            most=70,
            dtypes=["float32"],
            lines=samples,
            speed=False,
        )
        assert not report.findings, report.text()
        assert report.lines - report.refused > 35, report.text()


LINES_AS_THEY_ARE_WRITTEN = [
    "relu",
    "relu f32 []",
    "gather f32 [3,4] s[4,1] uniform(-2.0,2.0)#7, 1, i64 [3,2] below(4)",
    "cat [f32 [2], i8 [0] {1,2}], dim=0 | threads",
    "my_ops::f bool [1,2] s[-1,0] bits#3, out=&0+1",
    "f f16 [2] {nan,-inf,1e-07,-0.0,1e+30}, None, 'a, b', (1, 2,), [1, 2], dtype.float32, True",
    'f.x (1+2j), 2j, (-0-1e-05j), -inf, ns=(), c64 [1] {(1e-05-infj)}, "it\'s", 1.5e-300',
]


@pytest.mark.parametrize("text", LINES_AS_THEY_ARE_WRITTEN)
def test_lines_are_parsed_and_printed(text):
    assert str(parse(text)) == text


def test_lines_of_another_form_are_refused():
    refused = {
        "": "line: expected the name of an operator at column 1, got the end",
        "relu f32 [3,]": "line: expected sizes, such as [3,4] at column 10, got '[3,]'",
        "relu f32 [3] | ": "line: expected a check at column 16, got the end",
        "relu f32 [03]": "line: expected it to be written as 'relu f32 [3]', got 'relu f32 [03]'",
        "relu &": "line: expected the number of an argument at column 7, got the end",
        "relu 1 2": "line: expected ', ', ' | ' or the end at column 7, got ' 2'",
    }
    for text, message in refused.items():
        with pytest.raises(ValueError) as raised:
            parse(text)
        assert str(raised.value) == message


ENTRY = """\
# ---- Activations ----
- func: squareplus(Tensor self, Scalar b=4) -> Tensor
  forms: functional, inplace, out
  pointwise: 0.5 * (self + sqrt(self * self + b))
  promote: float
  check: ['b >= 0']
  dtypes: {all: [bool, real]}
  doc: The smooth rectifier (self + sqrt(self^2 + b)) / 2.
"""
KERNEL_OF_ENTRY = """\
def squareplus(x, b=4):
    return (x + (x * x + b).sqrt()) / 2
def wrong(x, b=4):
    return (x + (x * x + b).sqrt()) * 0.5001
"""


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(ENTRY)
    Path("k.py").write_text(KERNEL_OF_ENTRY)

    def command(*arguments):
        status = main(["check-kernel", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    kernel = ["my.yaml:squareplus", "k.py:wrong"]
    status, out, err = command(*kernel, "--first", "--json", "--dtype=float32")
    assert status == 1, err
    report = json.loads(out)
    assert [f["kind"] for f in report["findings"]] == ["wrong value"]
    # A finding's line makes it again.
    line = report["findings"][0]["line"]
    status, out, _ = command(*kernel, "--line", line)
    assert status == 1
    assert out.startswith(f"wrong value: {line}    at [0, 0]: expected ")
    status, out, err = command("my.yaml:squareplus", "k.py:squareplus", "--line", line)
    assert (status, err) == (0, "")
    assert out.startswith("my.yaml:squareplus: 1 lines, 0 findings, ")


def test_what_is_refused():
    """In one process: the operator, the kernel, and a line."""
    with Checker() as checker:
        for operator, kernel, line, message in REFUSED:
            with pytest.raises(ValueError) as error:
                checker.check(operator, kernel, lines=[line], only=True)
            assert str(error.value) == message
        with pytest.raises(ValueError) as error:
            checker.check("_softmax")
        assert str(error.value) == (
            "check-kernel: expected calls that _softmax takes, got no samples of its tests; "
            "--sample gives some"
        )


REFUSED = [
    (
        "relu",
        "",
        "relu bool [3]",
        "check-kernel: expected calls that relu takes, got 1 that it refuses; --sample gives some",
    ),
    ("relux", "", "relu", "check-kernel: expected the name of an operator, got 'relux'"),
    (
        "add",
        "",
        "add",
        "check-kernel: expected the name of an operator, got 'add'; there are add.Scalar, "
        "add.Tensor",
    ),
    (
        "relu",
        "k.txt",
        "relu",
        "check-kernel: expected a kernel as FILE.py:NAME, MODULE:NAME, FILE.so, FILE.cc:NAME "
        "or tvm_ffi:FILE.so:NAME, got 'k.txt'",
    ),
    (
        "relu",
        "math:nothing",
        "relu",
        "check-kernel: expected a function nothing in math, got None",
    ),
    ("relu", "", "relu f32", "line: expected a number at column 6, got 'f32'"),
    (
        "relu",
        "",
        "relu f32 [2] many",
        "line: expected values in (below, bits, inf, integers, minuszero, nan, ones, range, "
        "special, subnormal, uniform, zeros), got 'many'",
    ),
    (
        "relu",
        "",
        "relu f32 [2] | nothing",
        "line: expected a check in (call, threads, concurrent, batch, calls, leak, peak, "
        "gradients, second), got 'nothing'",
    ),
]
