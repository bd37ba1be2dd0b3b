"""Integers as vectors with a single one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from .._operators import ops

one_hot = ops.one_hot
