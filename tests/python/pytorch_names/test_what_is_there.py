"""Questions about libraries, profilers and the machine."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle.backends import cusparselt, kleidiai, mkl, nnpack
from treadle.profiler import itt
from treadle.utils import collect_env


def test_libraries_that_nothing_calls():
    assert not kleidiai.is_available() and not nnpack.is_available()
    assert not cusparselt.is_available()
    assert cusparselt.version() is None and cusparselt.get_max_alg_id() is None
    assert (mkl.VERBOSE_OFF, mkl.VERBOSE_ON) == (0, 1)
    with nnpack.flags(enabled=True):
        assert treadle.backends.nnpack.enabled
        assert nnpack.set_flags(False) == (True,)
    assert nnpack.enabled is False


def test_marks_for_a_profiler_that_is_not_there():
    assert not itt.is_available()
    for call in (lambda: itt.mark("x"), itt.range_pop, lambda: itt.range("{}", 1).__enter__()):
        with pytest.raises(RuntimeError, match="^itt.*: expected the profiler of Intel's"):
            call()


def says(text, status=0):
    asked = []

    def run(command):
        asked.append(command)
        return status, text, ""

    run.asked = asked
    return run


def test_what_programs_say_of_the_machine():
    assert collect_env.run_and_return_first_line(says("a\nb"), "x") == "a"
    assert collect_env.run_and_return_first_line(says("a", 1), "x") is None
    listed = says("# packages\nnumpy 2.0\nzlib 1.3\nmkl 2024")
    assert collect_env.get_conda_packages(listed) == "numpy 2.0\nmkl 2024"
    assert collect_env.get_conda_packages(listed, ["zlib"]) == "zlib 1.3"
    assert collect_env.get_conda_packages(says("", 127)) is None
    package = says("1.2-3")
    assert collect_env.get_linux_pkg_version(package, "libc6") == "1.2-3"
    assert package.asked[0][-1] == "libc6"
    assert collect_env.get_linux_pkg_version(says("", 1), "libc6") == "N/A"
    assert collect_env.get_lsb_version(says("Description:\tUbuntu 24.04")) == "Ubuntu 24.04"
    assert collect_env.check_release_file(says('ID=x\nPRETTY_NAME="Debian 12"')) == "Debian 12"
    assert collect_env.get_mac_version(says("14.5")) == "14.5"


def test_what_drivers_say(monkeypatch):
    assert collect_env.get_gpu_info(says("GPU 0: H100 (UUID: GPU-1)")) == "GPU 0: H100"
    assert collect_env.get_gpu_info(says("", 127)) is None
    smi = says("| Driver Version: 550.1   CUDA Version: 12.4 |")
    assert collect_env.get_nvidia_driver_version(smi) == "550.1"
    assert smi.asked == [collect_env.get_nvidia_smi()]
    nvcc = says("Cuda compilation tools, release 12.4, V12.4.131")
    assert collect_env.get_running_cuda_version(nvcc) == "12.4.131"
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    found = collect_env.get_cachingallocator_config()
    assert found["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    monkeypatch.setattr(treadle.cuda, "is_available", lambda: False)
    assert collect_env.get_cuda_module_loading_config() == "N/A"
    assert collect_env.is_xnnpack_available() is False
