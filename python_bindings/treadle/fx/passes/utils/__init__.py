"""The common parts of passes."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(
    __name__, dict.fromkeys(("HolderModule", "compare_graphs", "lift_subgraph_as_module"), "common")
)
