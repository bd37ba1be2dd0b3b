"""Builds the backend's shared library into the package, with the installed Treadle's headers."""

# SPDX-License-Identifier: Apache-2.0

import os

from setuptools import Extension, setup

from treadle.utils.cpp_extension import include_paths

# The device's name is part of the library: TREADLE_MINIMAL_NAME=other pip wheel ... makes a copy
# that can be loaded beside this one. TREADLE_MINIMAL_HANDLES=1 hands out storages that are no
# addresses.
macros = [("TREADLE_MINIMAL_NAME", f'"{os.environ.get("TREADLE_MINIMAL_NAME", "minimal")}"')]
if os.environ.get("TREADLE_MINIMAL_HANDLES"):
    macros.append(("TREADLE_MINIMAL_HANDLES", "1"))

setup(
    packages=["treadle_minimal"],
    package_dir={"": "src"},
    ext_modules=[
        Extension(
            "treadle_minimal.backend",
            ["minimal.cc"],
            include_dirs=include_paths(),
            define_macros=macros,
            extra_compile_args=["-std=c++17", "-O2", "-g0", "-fvisibility=hidden"],
            language="c++",
        )
    ],
)
