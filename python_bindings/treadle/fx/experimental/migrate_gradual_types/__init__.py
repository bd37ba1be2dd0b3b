"""Sizes of a graph as constraints: what must be true of them for the graph to run.

`constraint` has the statements, `operation` their signs, `util` new variables.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
