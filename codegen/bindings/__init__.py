"""The Python side of the operators: bindings.cc.j2 and the stubs.

`parameters` says how an argument is parsed and read, `signatures` gathers the overloads of a name,
`stubs` has the text of the stubs.
"""

# SPDX-License-Identifier: Apache-2.0
