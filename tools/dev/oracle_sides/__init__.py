"""The two sides of ./dev oracle: one program under PyTorch, one under Treadle.

`reference.py` makes samples from PyTorch's own databases, runs them and writes what they gave;
`ours.py` reads these, runs them again and says what is other. `parts.py` is what both run,
`plain.py` the form in which tensors, functions and errors go from one to the other, `compare.py`
the judge."""

# SPDX-License-Identifier: Apache-2.0
