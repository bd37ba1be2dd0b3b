"""Builds the wheel of extra_ops: python -m pip wheel --no-build-isolation ."""

# SPDX-License-Identifier: Apache-2.0

from glob import glob

from setuptools import setup

from treadle.utils.cpp_extension import BuildExtension, CppExtension, requirement

setup(
    ext_modules=[
        CppExtension(
            "extra_ops",
            ["extra_ops.yaml", *sorted(glob("kernels/*.cc"))],
            derivatives="derivatives.yaml",
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    # The compiled code fits no other release.
    install_requires=[requirement()],
)
