"""The package as a program that imports it as torch sees it: torch, everywhere."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys

import pytest

# A line each: what is printed, and what a program that runs on PyTorch expects to see.
SEEN = [
    ("torch.__name__, nn.__name__, torch.linalg.__name__", "('torch', 'torch.nn', 'torch.linalg')"),
    ("type(torch.ones(1))", "<class 'torch.Tensor'>"),
    ("nn.Linear", "<class 'torch.nn.modules.linear.Linear'>"),
    ("nn.Parameter, torch.Size", "(<class 'torch.nn.parameter.Parameter'>, <class 'torch.Size'>)"),
    ("torch.optim.Adam", "<class 'torch.optim.adam.Adam'>"),
    ("torch.utils.data.DataLoader", "<class 'torch.utils.data.dataloader.DataLoader'>"),
    ("nn.functional.cross_entropy.__module__", "'torch.nn.functional'"),
    ("str(torch.float32), torch.Size([2])", "('torch.float32', torch.Size([2]))"),
    ("torch.strided", "torch.strided"),
    ("torch.ones(1).type(), torch.channels_last", "('torch.FloatTensor', torch.channels_last)"),
    ("torch.ones(1, dtype=torch.float64)", "tensor([1.], dtype=torch.float64)"),
    ("repr(torch.ones(2).max(0)).split('(')[0]", "'torch.return_types.max'"),
    ("b'treadle' in pickle.dumps(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))", "False"),
    ("b'treadle' in pickle.dumps(torch.optim.SGD([torch.ones(1)], lr=1))", "False"),
    ("type(pickle.loads(pickle.dumps(nn.LSTM(1, 1)))) is nn.LSTM", "True"),
    ("type(saved(nn.Linear(2, 2))) is nn.Linear", "True"),
    ("type(saved(nn.Fold(2, 2))) is nn.Fold", "True"),
    ("refused_by_load()", "[]"),
    ("inspect.getsource(nn.Linear).split('(')[0]", "'class Linear'"),
    ("message(lambda: torch.ones(1).foo)", "\"'Tensor' object has no attribute 'foo'\""),
    (
        "message(lambda: torch.set_default_dtype(torch.int64))",
        "'set_default_dtype: expected a floating dtype, got torch.int64'",
    ),
    (
        "message(lambda: torch.finfo(torch.int64))",
        "'finfo: expected a floating dtype, got torch.int64; use torch.iinfo for integers'",
    ),
    (
        "message(lambda: torch.ones(1, dtype=torch.bfloat16).numpy())",
        "'numpy: expected a dtype that NumPy has, got torch.bfloat16'",
    ),
    (
        "message(lambda: torch.device('notadevice'))",
        "'Expected one of cpu, meta, cuda device type at start of device string: notadevice'",
    ),
]  # fmt: skip
PROGRAM = """
import inspect, io, pickle
import torch
from torch import nn

def message(call):
    try:
        call()
    except Exception as error:
        return str(error)

def refused_by_load():
    from treadle.serialization._program_classes import find
    layers = [c for c in vars(nn).values() if isinstance(c, type) and issubclass(c, nn.Module)]
    assert len(layers) > 140
    return [c for c in layers if isinstance(find(c.__module__, c.__qualname__), str)]

def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    assert b"treadle" not in file.getvalue()
    file.seek(0)
    return torch.load(file, weights_only=False)

"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("seen") / "program.py"
    path.write_text(PROGRAM + "".join(f"print(repr(({text})))\n" for text, _ in SEEN))
    done = subprocess.run(
        [sys.executable, "-m", "treadle.run", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("number", range(len(SEEN)), ids=[text for text, _ in SEEN])
def test_it_is_torch(seen: list[str], number: int) -> None:
    assert seen[number] == SEEN[number][1]


def test_names_come_back() -> None:
    program = (
        "import treadle, treadle.nn as nn, treadle._run.import_hook as hook\n"
        "import treadle.utils.hooks\n"
        "def said(): return (treadle.__name__, nn.__name__, nn.Linear.__module__,\n"
        "    treadle.Tensor.__module__, nn.functional.relu.__module__, repr(treadle.float32))\n"
        "before = said()\n"
        "hook.install()\n"
        "assert all(text.startswith('torch') for text in said()), said()\n"
        "hook.uninstall()\n"
        "assert said() == before, (said(), before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_type_of_every_dtype() -> None:
    program = (
        "import treadle\n"
        "types = {d: d for d in vars(treadle._C).values() if isinstance(d, treadle.dtype)}\n"
        "for dtype in types:\n"
        "    if not str(dtype).startswith('treadle.q'):\n"
        "        print(dtype, treadle.empty(1, dtype=dtype).type())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = dict(line.split() for line in done.stdout.splitlines())
    assert names["treadle.float8_e4m3fn"] == "treadle.Float8_e4m3fnTensor"
    assert names["treadle.complex32"] == "treadle.ComplexHalfTensor"
    assert names["treadle.bool"] == "treadle.BoolTensor" and len(names) >= 23
