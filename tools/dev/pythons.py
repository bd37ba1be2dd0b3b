"""./dev pythons: builds the wheel for each Python of a supported version that the machine has, and
runs a first program with it in an empty environment.

    ./dev pythons                       # 3.10 to 3.13, as python3.10 ... on the PATH
    ./dev pythons python3.13 /opt/py/bin/python3.10
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import shutil

import bazel
import environment
from gpu import interpreter
from ui import ROOT, run, say, step

SUPPORTED = ("3.10", "3.11", "3.12", "3.13")

# The errors of a wheel for the wrong Python: calls, gradients, collected cycles, threads that
# end, pickles, worker processes, NumPy.
PROGRAM = """
import gc, pickle, sys, threading, weakref
import numpy, treadle as torch
from treadle.utils.data import DataLoader

assert "site-packages" in torch.__file__, torch.__file__
x = torch.randn(64, 8, requires_grad=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
model(x).sum().backward()
assert x.grad.shape == x.shape
assert torch.equal(pickle.loads(pickle.dumps(x.detach())), x)
assert numpy.allclose(x.detach().numpy() * 2, (x + x).detach().numpy())
class Node: pass
node = Node(); node.t = torch.ones(3); node.t.owner = node
seen = weakref.ref(node); del node; gc.collect(); assert seen() is None
threads = [threading.Thread(target=lambda: (x @ x.T).sum().item()) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
if __name__ == "__main__":
    assert [b.sum().item() for b in DataLoader(torch.arange(8), 4, num_workers=1)] == [6, 22]
    try: torch.ones(2) @ torch.ones(3)
    except RuntimeError as error: assert "expected" in str(error)
    print("ran on", sys.version.split()[0], "with NumPy", numpy.__version__)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pythons", nargs="*", help="interpreters; by default those on the PATH")


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    names = args.pythons or [f"python{v}" for v in SUPPORTED if shutil.which(f"python{v}")]
    status = 0
    for name in names:
        status = smoke_test(name) or status
    say(f"{len(names)} Pythons tried" + ("" if status == 0 else "; not all of them passed"))
    return status


def smoke_test(name: str) -> int:
    """Builds and tries the wheel for one Python."""
    base, tag = interpreter(name)
    folder = ROOT / "build" / f"python-{tag}"
    environment.virtual_environment(
        folder / "build",
        ["-r", str(environment.REQUIREMENTS)],
        environment.REQUIREMENTS.read_bytes(),
        f"Python packages for {tag}",
        base=base,
    )
    python = f"--repo_env=TREADLE_PYTHON={folder / 'build' / 'bin' / 'python'}"
    wheel = bazel.wheel_of(bazel.build(bazel.Config("", (python,)), bazel.WHEEL), bazel.WHEEL)
    environment.virtual_environment(
        folder / "use",
        [str(wheel), "numpy"],
        wheel.read_bytes(),
        f"Installing {wheel.name}",
        base=base,
    )
    program = folder / "first.py"
    program.write_text(PROGRAM)
    with step(f"A first program with {name}"):
        return run([str(folder / "use" / "bin" / "python"), str(program)], env={"PYTHONPATH": ""})
