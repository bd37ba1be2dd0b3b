"""Distributions, and what PyTorch says of them.

cases.py      one or more distributions of each class, and values of theirs
record.py     what is looked at in a case, in Treadle or in PyTorch
make_data.py  writes results.json, where PyTorch is installed
"""

# SPDX-License-Identifier: Apache-2.0
