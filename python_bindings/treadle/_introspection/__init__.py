"""Answers about the library: its operators, their schemas and tags, and how it was built."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
