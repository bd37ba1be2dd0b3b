"""The parts of an operator's code, from its entry: ops.cc.j2, op_header.h.j2 and kernels_cpu.cc.j2.

`contract` has the checks of a call, `lookup` how its kernel is found, `elements` what pointwise and
reducing operators compute, `linked` the functions written by hand, `lists` the operators on lists,
`facts` the constant data about an entry.
"""

# SPDX-License-Identifier: Apache-2.0
