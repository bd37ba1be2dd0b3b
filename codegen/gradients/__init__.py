"""The content of variable_type.cc.j2: the node of each derivative, and how each call is recorded.

`edges` numbers the edges of a node, `nodes` has the nodes and what they keep, `formulas` the C++ of
formulas, `layer` the functions that record calls.
"""

# SPDX-License-Identifier: Apache-2.0
