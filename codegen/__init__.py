"""From the checked model to files: C++, stubs and reference pages.

The build of Treadle runs `python -m codegen.render`; with the package installed, `python -m
treadle.codegen my_ops.yaml --out gen/` makes a library of operators of one's own.
"""

# SPDX-License-Identifier: Apache-2.0
