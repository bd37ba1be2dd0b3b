"""python -m treadle.run: programs that import torch run as plain Python would run them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import venv
from pathlib import Path
from typing import Any, Sequence

import numpy
import pytest

import treadle
import treadle.run
from treadle import version

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        filter(None, [str(Path(treadle.__file__).parents[1]), os.environ.get("PYTHONPATH")])
    ),
}


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return name


def _run(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _python(folder, "-m", "treadle.run", _write(folder, "program.py", text), *arguments)


def _printed(folder: Path, text: str, *arguments: str) -> list[str]:
    done = _run(folder, text, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_all_forms_of_import_give_the_same_objects(tmp_path: Path) -> None:
    printed = _printed(
        tmp_path,
        """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.optim.lr_scheduler
        from torch import nn as other, optim
        from torch.utils.data import DataLoader
        from torch.nn.modules.linear import Linear
        import importlib, sys
        import treadle

        assert torch is treadle and nn is treadle.nn is other and F is treadle.nn.functional
        assert torch.torch is torch
        assert optim.lr_scheduler is treadle.optim.lr_scheduler
        assert Linear is treadle.nn.Linear and DataLoader is treadle.utils.data.DataLoader
        assert importlib.import_module("torch.linalg") is treadle.linalg
        # Each loaded module is there once, under both names.
        ours = {name[7:]: module for name, module in sys.modules.items() if name[:8] == "treadle."}
        for name, module in ours.items():
            assert sys.modules["torch" + name] is module, name
        print(len(ours) > 20, F.relu(torch.tensor([-1.0, 2.0])).tolist())
        """,
    )
    assert printed == ["True [0.0, 2.0]"]


def test_classes_are_where_pytorch_has_them(tmp_path: Path) -> None:
    """Also where the modules of this package are laid out otherwise."""
    printed = _printed(
        tmp_path,
        """
        import torch
        import torch.nn.modules.fold
        from torch.nn.modules.upsampling import Upsample
        from torch.nn.modules.activation import MultiheadAttention
        from torch.nn.modules.loss import _Loss, CTCLoss
        from torch.nn.modules.utils import _pair, _triple
        from torch.nn.common_types import _size_2_t
        from torch.nn.parameter import UninitializedParameter
        from torch.utils.data.dataset import Dataset
        from torch.nn.modules.activation import *

        assert ELU is torch.nn.ELU and len(torch.nn.modules.activation.__all__) == 29
        assert Upsample is torch.nn.Upsample and CTCLoss is torch.nn.CTCLoss
        assert torch.nn.modules.fold.Unfold is torch.nn.Unfold
        assert torch.nn.modules.channelshuffle.ChannelShuffle is torch.nn.ChannelShuffle
        assert MultiheadAttention is torch.nn.MultiheadAttention and _pair(2) == (2, 2)
        for use in (
            lambda: torch.nn.modules.fold.NoSuch,
            lambda: torch.nn.modules.loss.NoSuch,
            lambda: torch.nn.modules.no_such,
        ):
            try:
                use()
            except AttributeError as error:
                print(error)
        """,
    )
    assert [line.split()[0] for line in printed] == [
        "torch.nn.modules.fold.NoSuch",
        "torch.nn.modules.loss.NoSuch",
        "torch.nn.modules.no_such",
    ]


# A program's questions about how it was started, printed alike by both.
ABOUT = """
import inspect, os, sys
print(__name__, __file__, __package__, __spec__ and __spec__.name, sys.argv, sys.path[0])
print(sorted(globals()), type(__loader__).__name__, __builtins__, __doc__, __annotations__)
def f() -> None:
    pass
print(inspect.getsource(f), f.__annotations__, sys.modules["__main__"].f is f)
"""
ENDS = {
    "ends": "pass",
    "exits with a number": "sys.exit(3)",
    "exits with a text": "sys.exit('too bad')",
    "exits at once": "os._exit(5)",
    "raises": "def g():\n    1 / 0\n\n\ng()",
    "raises with a cause": "try:\n    {}[1]\nexcept KeyError as e:\n    raise ValueError from e",
    "is interrupted": "import signal; os.kill(os.getpid(), signal.SIGINT)",
    "has a hook": "sys.excepthook = lambda kind, e, tb: print(kind, e, tb.tb_lineno)\nint('x')",
    "ends later": "import atexit; atexit.register(lambda: print('bye', f.__name__, flush=True))",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_script_is_as_with_plain_python(tmp_path: Path, end: str) -> None:
    script = _write(tmp_path, "folder/script.py", ABOUT + ENDS[end])
    plain = _python(tmp_path, script, "-x", "--", "1")
    run = _python(tmp_path, "-m", "treadle.run", script, "-x", "--", "1")
    assert (run.stdout, run.stderr) == (plain.stdout, plain.stderr)
    assert run.returncode == plain.returncode


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.py"],
        ["broken.py"],
        ["-m", "missing"],
        ["-m", "package.missing"],
        ["-m", "package.part", "a"],
        ["-m", "package", "a"],
        ["package", "a"],
    ],
    ids=" ".join,
)
def test_modules_and_mistakes_are_as_with_plain_python(
    tmp_path: Path, arguments: Sequence[str]
) -> None:
    _write(tmp_path, "broken.py", "x = \n")
    _write(tmp_path, "package/__init__.py", "")
    _write(tmp_path, "package/part.py", "from . import __name__ as parent\nprint(parent)" + ABOUT)
    _write(tmp_path, "package/__main__.py", ABOUT)
    plain = _python(tmp_path, *arguments)
    run = _python(tmp_path, "-m", "treadle.run", *arguments)
    assert (run.returncode, run.stdout) == (plain.returncode, plain.stdout)
    assert run.stderr == plain.stderr


def test_usage(tmp_path: Path) -> None:
    asked, nothing = (_python(tmp_path, "-m", "treadle.run", *a) for a in (["-h"], []))
    assert (asked.returncode, nothing.returncode) == (0, 2)
    assert asked.stdout == nothing.stderr and "script.py [argument ...]" in asked.stdout


def test_modules_beside_the_script(tmp_path: Path) -> None:
    _write(tmp_path, "beside.py", "import torch.nn\nvalue = torch.nn")
    assert _printed(tmp_path, "import beside, torch; print(beside.value is torch.nn)") == ["True"]


def test_missing_names_name_themselves(tmp_path: Path) -> None:
    printed = _printed(
        tmp_path,
        """
        import torch, torch.nn.functional as F

        def of(use):
            try:
                use()
            except Exception as error:
                print(f"{type(error).__name__}: {error}")

        of(lambda: torch.no_such)
        of(lambda: torch.nn.NoSuch)
        of(lambda: F.no_such)
        of(lambda: torch.utils.data.NoSuch)
        of(lambda: __import__("torch.no_such"))
        of(lambda: __import__("torch.nn.no_such.deeper"))
        of(lambda: __import__("torch.licenses"))
        print(hasattr(torch, "no_such"), hasattr(torch.nn, "no_such"), getattr(F, "x", 5))
        try:
            from torch.nn import NoSuch
        except ImportError:
            print("as plain Python has it")
        import importlib.util
        find = importlib.util.find_spec
        print(find("torch.no_such"), find("torch.nn") is None)
        """,
    )
    page = "does not exist in Treadle; see docs/coming-from-pytorch.md"
    assert printed == [
        f"AttributeError: torch.no_such {page}",
        f"AttributeError: torch.nn.NoSuch {page}",
        f"AttributeError: torch.nn.functional.no_such {page}",
        f"AttributeError: torch.utils.data.NoSuch {page}",
        "ModuleNotFoundError: No module named 'torch.no_such'",
        "ModuleNotFoundError: No module named 'torch.nn.no_such'",
        "ModuleNotFoundError: No module named 'torch.licenses'",
        "False False 5",
        "as plain Python has it",
        "None False",
    ]


def test_the_version_is_one_that_programs_can_parse(tmp_path: Path) -> None:
    printed = _printed(
        tmp_path,
        """
        import torch, importlib.metadata
        major, minor = (int(part) for part in torch.__version__.split(".")[:2])
        print((major, minor) >= (2, 0), float(torch.__version__[:3]) >= 2.0)
        print(torch.__version__ >= "1.13", torch.__version__ >= (1, 13), torch.__version__ < "2.20")
        print("treadle" in torch.__version__, torch.__version__ == torch.version.__version__)
        print(importlib.metadata.version("torch") == torch.__version__)
        print(torch.version.cuda, torch.version.hip)
        """,
    )
    assert printed == ["True True", "True True True", "True True", "True", "None None"]


def test_the_package_speaks_as_torch(tmp_path: Path) -> None:
    printed = _printed(
        tmp_path,
        """
        import torch
        x = torch.zeros(2, 3, dtype=torch.float64)
        print(x.dtype, x.shape, x.layout, torch.channels_last, x.type(), x[0])
        print(torch.typename(torch.nn.ReLU()), str(x.dtype).split(".")[1])
        """,
    )
    assert printed == [
        "torch.float64 torch.Size([2, 3]) torch.strided torch.channels_last torch.DoubleTensor "
        "tensor([0., 0., 0.], dtype=torch.float64)",
        "torch.nn.modules.activation.ReLU float64",
    ]


PROCESSES = """
import multiprocessing, pickle, subprocess, sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

def work(queue, net):
    import torch.nn.functional as F
    queue.put((type(net) is Net, F is torch.nn.functional, str(torch.float32)))

if __name__ == "__main__":
    assert type(pickle.loads(pickle.dumps(Net()))) is Net
    for method in sys.argv[1:]:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue, Net()))
        process.start()
        print(queue.get(timeout=30))
        process.join()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_a_program(tmp_path: Path, method: str) -> None:
    assert _printed(tmp_path, PROCESSES, method) == ["(True, True, 'torch.float32')"]


def test_processes_after_install(tmp_path: Path) -> None:
    """A worker that is spawned imports the script before the call of install()."""
    text = "if __name__ == '__main__':\n    import treadle.run\n    treadle.run.install()\n"
    done = _python(tmp_path, _write(tmp_path, "program.py", text + PROCESSES), "spawn")
    assert (done.stdout, done.stderr) == ("(True, True, 'torch.float32')\n", "")


def test_other_python_processes_of_a_program(tmp_path: Path) -> None:
    printed = _printed(
        tmp_path,
        """
        import subprocess, sys
        code = "import torch.nn, treadle; print(torch.nn is treadle.nn)"
        print(subprocess.check_output([sys.executable, "-c", code], text=True))
        """,
    )
    assert printed[0] == "True"


def test_install_and_uninstall(tmp_path: Path) -> None:
    own, path = treadle.__version__, list(sys.path)
    treadle.run.install()
    treadle.run.install()
    try:
        import torch  # type: ignore[import-not-found]
        import torch.nn  # type: ignore[import-not-found]

        assert torch is treadle and torch.__version__ != own
        assert str(torch.int8) == "torch.int8"
    finally:
        treadle.run.uninstall()
    treadle.run.uninstall()
    assert treadle.__version__ == own and sys.path == path
    assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
    assert str(treadle.int8) == "treadle.int8"
    with pytest.raises(AttributeError, match="module 'treadle.nn' has no attribute 'NoSuch'"):
        treadle.nn.NoSuch  # noqa: B018


def _environment(folder: Path) -> Path:
    """The Python of an empty environment; this package and NumPy are on its path."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def _with(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    packages = [ENVIRONMENT["PYTHONPATH"], str(Path(numpy.__file__).parents[1])]
    return subprocess.run(
        [str(python), *arguments],
        env=ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(packages)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=python.parent,
    )


def test_an_environment_with_treadle_as_torch(tmp_path: Path) -> None:
    python = _environment(tmp_path / "env")
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    before = sorted(site.iterdir())
    for _ in range(2):  # a second time it is written anew
        done = _with(python, "-m", "treadle.run", "--install")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"torch {version.__version__} in {site} is treadle\n"
    code = """
import importlib.metadata, importlib.util
print(importlib.util.find_spec("torch") is not None, importlib.metadata.version("torch"))
import torch.nn.functional as F
import torch
print(F is torch.nn.functional, torch.ones(2).dtype, importlib.metadata.version("torch"))
"""
    number = str(version.__version__)
    lines = _with(python, "-c", code)
    assert lines.stderr == ""
    assert lines.stdout.splitlines() == [f"True {number}", f"True torch.float32 {number}"]
    record = (site / f"torch-{number}.dist-info" / "RECORD").read_text()
    files = [line.split(",")[0] for line in record.splitlines()]
    assert len(files) == 5 and all((site / file).is_file() for file in files)
    done = _with(python, "-m", "treadle.run", "--uninstall")
    assert (done.stdout, done.returncode) == (f"removed torch from {site}\n", 0)
    assert sorted(site.iterdir()) == before
    assert _with(python, "-c", "import torch").returncode == 1
    done = _with(python, "-m", "treadle.run", "--uninstall")
    assert done.returncode == 1
    assert done.stderr == (
        f"treadle.run --uninstall: expected torch as --install writes it, got none in {site}\n"
    )


def test_an_environment_with_pytorch_is_left_alone(tmp_path: Path) -> None:
    python = _environment(tmp_path / "env")
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n"
    _write(site, "torch-2.9.1.dist-info/METADATA", metadata)
    before = sorted(site.rglob("*"))
    done = _with(python, "-m", "treadle.run", "--install")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "treadle.run --install: expected an environment without PyTorch, got torch 2.9.1 in "
        f"{site}\n"
    )
    assert sorted(site.rglob("*")) == before


def test_install_refuses_another_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    other: Any = type(sys)("torch")
    monkeypatch.setitem(sys.modules, "torch", other)
    with pytest.raises(RuntimeError, match="expected that torch is not imported yet"):
        treadle.run.install()


VERSIONS = ["1.13.1", "2.0.0a1", "2.0.0rc1", "2.0.0", "2.0.0+cpu", "2.0.1", "2.9", "2.10", "10.0"]


def test_versions_compare_as_versions() -> None:
    from treadle.torch_version import TorchVersion

    for i, first in enumerate(VERSIONS):
        for j, second in enumerate(VERSIONS):
            for other in (second, TorchVersion(second)):
                version = TorchVersion(first)
                assert (version < other, version > other) == (i < j, i > j), (first, second)
                assert (version == other, version != other) == (i == j, i != j)
                assert (version <= other, version >= other) == (i <= j, i >= j)
    assert TorchVersion("2.9.1") == (2, 9, 1) and TorchVersion("2.9.1") > (2, 9)
    assert TorchVersion("2.9") == "2.9.0" and TorchVersion("2.9") != "no version"
    assert isinstance(TorchVersion("2.9"), str) and {TorchVersion("2.9"): 1}["2.9"] == 1
    with pytest.raises(TypeError):
        TorchVersion("2.9") < 3  # noqa: B015
