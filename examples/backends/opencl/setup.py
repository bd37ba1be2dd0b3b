"""Builds the backend's shared library into the package, with the headers of the installed Treadle
and the OpenCL headers and loader of the machine."""

# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

from setuptools import Extension, setup

from treadle.utils.cpp_extension import include_paths

here = Path(__file__).parent
# The texts of the programs are compiled into the library.
texts = sorted(str(path.relative_to(here)) for path in here.glob("cl/*.cl"))
headers = sorted(str(path.relative_to(here)) for path in here.glob("src/*.h"))

setup(
    packages=["treadle_opencl"],
    package_dir={"": "src"},
    ext_modules=[
        Extension(
            "treadle_opencl.backend",
            sorted(str(path.relative_to(here)) for path in here.glob("src/*.cc")),
            depends=headers + texts,
            include_dirs=include_paths(),
            libraries=["OpenCL"],
            extra_compile_args=["-std=c++17", "-fvisibility=hidden", "-Wall"],
            language="c++",
        )
    ],
)
