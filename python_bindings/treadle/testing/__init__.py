"""Helpers for tests: comparing tensors, and making some."""

# SPDX-License-Identifier: Apache-2.0

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
from ._file_check import FileCheck  # noqa: F401

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
