"""Layers in training: what is trained, how, and PyTorch's numbers.

case.py       what a case is
cases_*.py    the cases, by kind of layer
training.py   twenty steps of a case, in Treadle or in PyTorch
make_data.py  writes results.npz, where PyTorch is installed
"""

# SPDX-License-Identifier: Apache-2.0
