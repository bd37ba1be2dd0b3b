"""Functions of the package itself, `treadle.einsum`, that are written in Python."""

# SPDX-License-Identifier: Apache-2.0
