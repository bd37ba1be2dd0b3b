"""The facts about the machine for a report of a fault: `python -m treadle.utils.collect_env`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from treadle import _C

# Packages whose versions matter to a program that uses this one.
COMMON_PATTERNS = "torch numpy treadle triton optree".split()
NVIDIA_PATTERNS = "cuda-cudart cuda-cupti cublas cudnn cufft curand cusolver cusparse nccl".split()
ONEAPI_PATTERNS = "dpcpp-cpp-rt intel-opencl-rt intel-sycl-rt mkl onemkl-sycl-blas tbb".split()
# The package that this one stands for is always there.
TORCH_AVAILABLE = True
CONDA_PATTERNS = [*COMMON_PATTERNS, *NVIDIA_PATTERNS, "cudatoolkit", "mkl", "magma"]
PIP_PATTERNS = "torch numpy mypy flake8 treadle triton optree onnx nccl nvidia cuda".split()


class SystemEnv(NamedTuple):
    """The facts; None for those that are not known."""

    version: str
    follows: str
    os: str
    platform: str
    libc: str
    gcc_version: Optional[str]
    clang_version: Optional[str]
    cmake_version: Optional[str]
    python_version: str
    python_platform: str
    devices: str
    threads: str
    pip_packages: str
    cpu_info: str


def run(command: Any) -> Tuple[int, str, str]:
    """The status, the output and the errors of a program; 127 where it is not there."""
    words: Sequence[str] = command.split() if isinstance(command, str) else command
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda: Any, command: Any) -> Optional[str]:
    """The output of a program; None where it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> Optional[str]:
    """The first group of a pattern in what a program says."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return None if found is None else found.group(1)


def run_and_return_first_line(run_lambda: Any, command: Any) -> Optional[str]:
    """The first line of what a program says; None where it fails."""
    said = run_and_read_all(run_lambda, command)
    return None if said is None else said.split("\n")[0]


def get_conda_packages(run_lambda: Any, patterns: Optional[List[str]] = None) -> Optional[str]:
    """The packages of conda whose names have one of the patterns, a line each; None without it."""
    wanted = CONDA_PATTERNS if patterns is None else patterns
    said = run_and_read_all(run_lambda, [os.environ.get("CONDA_EXE", "conda"), "list"])
    if said is None:
        return None
    lines = (line for line in said.splitlines() if not line.startswith("#"))
    return "\n".join(line for line in lines if any(name in line for name in wanted))


def get_linux_pkg_version(run_lambda: Any, pkg_name: str) -> str:
    """The version of a package of Debian's or Ubuntu's; "N/A" where it is not installed."""
    query = ["dpkg-query", "--show", "--showformat=${Version}", pkg_name]
    return run_and_read_all(run_lambda, query) or "N/A"


def get_lsb_version(run_lambda: Any) -> Optional[str]:
    """The name of the system from lsb_release."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Any) -> Optional[str]:
    """The name of the system from /etc/os-release."""
    path = ["cat", "/etc/os-release"]
    return run_and_parse_first_match(run_lambda, path, r'PRETTY_NAME="(.*)"')


def get_mac_version(run_lambda: Any) -> Optional[str]:
    """The version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_nvidia_smi() -> str:
    """The command that asks the driver of NVIDIA's devices."""
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Any) -> Optional[str]:
    """The version of that driver; None without it."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Any) -> Optional[str]:
    """The names of NVIDIA's devices, a line each; None without them."""
    said = run_and_read_all(run_lambda, [get_nvidia_smi(), "-L"])
    return None if said is None else re.sub(r" \(UUID: .+?\)", "", said)


def get_running_cuda_version(run_lambda: Any) -> Optional[str]:
    """The version of the compiler for CUDA; None without it."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Any) -> Optional[str]:
    """The files of cuDNN that the system finds, one a line; None where there is none."""
    said = run_and_read_all(run_lambda, ["/sbin/ldconfig", "-p"]) or ""
    found = sorted({os.path.realpath(f) for f in re.findall(r"=> (\S*libcudnn\S*)", said)})
    return "\n".join(found) if found else None


def get_intel_gpu_onboard(run_lambda: Any) -> str:
    """The system's report of Intel's GPUs; "N/A" for nothing."""
    said = run_and_read_all(run_lambda, ["xpu-smi", "discovery"])
    return said or "N/A"


def get_intel_gpu_detected(run_lambda: Any) -> str:
    """Those that programs can use: "N/A", as there is no backend for them."""
    return "N/A"


def get_intel_gpu_driver_version(run_lambda: Any) -> str:
    """The versions of the packages of Intel's driver, one a line."""
    names = ("intel-opencl-icd", "libze1", "level-zero")
    known = ((name, get_linux_pkg_version(run_lambda, name)) for name in names)
    return "\n".join(f"* {name}: {version}" for name, version in known if version != "N/A")


def get_windows_version(run_lambda: Any) -> Optional[str]:
    """The version of Windows; None on other systems."""
    if get_platform() != "win32":
        return None
    return run_and_read_all(run_lambda, ["cmd", "/c", "ver"])


def get_cuda_module_loading_config() -> str:
    """When code is brought to CUDA devices, as the environment says; "N/A" without a device."""
    from treadle import cuda

    if not cuda.is_available():
        return "N/A"
    return os.environ.get("CUDA_MODULE_LOADING", "LAZY")


def get_cachingallocator_config() -> Dict[str, str]:
    """The variables of the environment that set how memory of devices is kept."""
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
    return {name: os.environ[name] for name in names if name in os.environ}


def is_xnnpack_available() -> bool:
    """Whether XNNPACK is called: it is not."""
    return False


def get_gcc_version(run_lambda: Any) -> Optional[str]:
    """The version of gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Any) -> Optional[str]:
    """The version of clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Any) -> Optional[str]:
    """The version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_platform() -> str:
    """The kind of system: linux."""
    return sys.platform


def get_os(run_lambda: Any) -> str:
    """The name and version of the system."""
    try:
        described = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        described = platform.platform()
    return f"{described} ({platform.machine()})"


def get_python_platform() -> str:
    """Python's name of the platform."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library and its version."""
    return "-".join(platform.libc_ver())


def get_cpu_info(run_lambda: Any) -> str:
    """The output of lscpu, or else the name and number of processors."""
    found = run_and_read_all(run_lambda, "lscpu")
    return found or f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors"


def get_pip_packages(run_lambda: Any, patterns: Optional[List[str]] = None) -> Tuple[str, str]:
    """ "pip", and the packages whose names have one of the patterns, a line each."""
    wanted = PIP_PATTERNS if patterns is None else patterns
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in importlib.metadata.distributions()
        if any(pattern in (d.metadata["Name"] or "") for pattern in wanted)
    }
    return "pip", "\n".join(sorted(found))


def get_env_info() -> SystemEnv:
    """All of it."""
    from treadle import _version, accelerator

    device = accelerator.current_accelerator()
    return SystemEnv(
        version=_version.__version__,
        follows=_version.FOLLOWED,
        os=get_os(run),
        platform=get_platform(),
        libc=get_libc_version(),
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        python_version=sys.version.replace("\n", " "),
        python_platform=get_python_platform(),
        devices="cpu" if device is None else f"cpu, {device.type}",
        threads=str(_C.get_num_threads()),
        pip_packages=get_pip_packages(run)[1],
        cpu_info=get_cpu_info(run),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """As text, a line for each."""
    lines = [
        f"Treadle version: {envinfo.version}, follows PyTorch {envinfo.follows}",
        f"Devices: {envinfo.devices}",
        f"Threads: {envinfo.threads}",
        "",
        f"OS: {envinfo.os}",
        f"GCC version: {envinfo.gcc_version or 'not found'}",
        f"Clang version: {envinfo.clang_version or 'not found'}",
        f"CMake version: {envinfo.cmake_version or 'not found'}",
        f"Libc version: {envinfo.libc}",
        "",
        f"Python version: {envinfo.python_version}",
        f"Python platform: {envinfo.python_platform}",
        "",
        "CPU:",
        envinfo.cpu_info,
        "",
        "Versions of relevant libraries:",
        *(f"[pip] {line}" for line in envinfo.pip_packages.splitlines()),
    ]
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """get_env_info() as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Write it to the output of the program."""
    sys.stdout.write(get_pretty_env_info() + "\n")


if __name__ == "__main__":
    main()
