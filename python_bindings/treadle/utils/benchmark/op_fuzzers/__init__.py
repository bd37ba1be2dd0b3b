"""Fuzzers for operators of one tensor, of two, sparse ones, and transforms."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
