"""The CUDA backend is found when a device is first asked for, and where it is not, errors say what
is missing. Each program is a process of its own, in which there is no package treadle-cuda, or one
made here.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import treadle

MISSING = "the package treadle-cuda is not installed"
NO_DEVICE = "expected a device that has memory, got cuda, for which no backend is loaded"

WITHOUT = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: (
    None if name == "treadle_cuda" else found(name, *rest)
)
"""

SHOW = """
def show(call):
    try:
        print(call())
    except RuntimeError as error:
        print(error)
"""


def run(program: str, *folders: Path) -> list[str]:
    path = [*map(str, folders), str(Path(treadle.__file__).parents[1])]
    before = f"import sys; sys.path[:0] = {path!r}\nimport treadle\n"
    result = subprocess.run(
        [sys.executable, "-c", before + SHOW + program], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()


def test_there_is_no_device_without_the_package() -> None:
    shown = run(
        WITHOUT
        + "show(lambda: (treadle.cuda.is_available(), treadle.cuda.device_count()))\n"
        + "show(lambda: treadle.zeros(2, device='cuda'))\n"
        + "show(lambda: treadle.ones(2).cuda())\n"
        + "show(treadle.cuda.synchronize)\n"
    )
    lacks = f"{NO_DEVICE}: {MISSING}"
    assert shown == [
        "(False, 0)",
        f"zeros: {lacks}",
        f"empty_like: {lacks}",
        f"cuda.synchronize: expected a CUDA device, got none: {MISSING}",
    ]


def test_a_program_need_not_ask_whether_there_is_a_device() -> None:
    shown = run(
        WITHOUT
        + "show(lambda: treadle.empty(1, device='cuda'))\n"
        + "show(lambda: treadle.nn.Linear(1, 1, device='cuda:1'))\n"
    )
    lacks = f"{NO_DEVICE}: {MISSING}"
    assert shown == [f"empty: {lacks}", f"empty: {lacks}"]


def test_what_needs_a_device_says_so() -> None:
    needing = {
        "CUDAGraph": "()",
        "graph": "(None)",
        "graph_pool_handle": "()",
        "make_graphed_callables": "(None, None)",
        "Stream": "()",
        "current_stream": "()",
        "get_device_properties": "()",
        "get_device_capability": "()",
        "get_rng_state": "()",
        "memory_summary": "()",
        "mem_get_info": "()",
    }
    calls = "".join(f"show(lambda: treadle.cuda.{n}{args})\n" for n, args in needing.items())
    lacks = f"expected a CUDA device, got none: {MISSING}"
    assert run(WITHOUT + calls) == [f"cuda.{name}: {lacks}" for name in needing]


def test_what_is_not_there_with_a_device_is_not_a_missing_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from treadle._device import facade

    monkeypatch.setattr(facade, "of_backend", lambda *_: None)
    monkeypatch.setattr(treadle._C, "_backends", lambda: ["cuda"])
    with pytest.raises(NotImplementedError, match="^cuda.temperature: not implemented$"):
        treadle.cuda.temperature()


def test_what_makes_no_difference_without_a_device_does_nothing() -> None:
    shown = run(
        WITHOUT
        + "show(lambda: treadle.cuda.manual_seed(1))\n"
        + "show(lambda: treadle.cuda.manual_seed_all(1))\n"
        + "show(treadle.cuda.empty_cache)\n"
        + "show(treadle.cuda.is_current_stream_capturing)\n"
        + "show(treadle.cuda.memory_stats)\n"
        + "show(treadle.cuda.get_rng_state_all)\n"
        + "show(treadle.profiler.supported_activities)\n"
    )
    assert shown[:4] == ["None", "None", "None", "False"]
    assert shown[4:6] == ["OrderedDict()", "[]"]
    assert "CUDA" not in shown[6]


def test_the_package_is_looked_for_when_a_device_is_asked_for(tmp_path: Path) -> None:
    package = tmp_path / "treadle_cuda"
    package.mkdir()
    library = package / "missing.so"
    (package / "__init__.py").write_text(f"LIBRARY = {str(library)!r}\n")
    shown = run(
        "print('treadle_cuda' in sys.modules)\n"
        "print(treadle.cuda.is_available(), 'treadle_cuda' in sys.modules)\n"
        "show(lambda: treadle.ones(1).to('cuda'))\n"
        "show(treadle.cuda.current_device)\n",
        tmp_path,
    )
    reason = f"{library}: expected a shared library that can be loaded, got: "
    assert shown[:2] == ["False", "False True"]
    assert shown[2].startswith(f"empty_like: {NO_DEVICE}: {reason}")
    assert shown[3].startswith("cuda.current_device: expected a CUDA device, got none: " + reason)
    assert len(shown) == 4
