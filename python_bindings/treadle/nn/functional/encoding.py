"""Integers as vectors with a single one."""

from __future__ import annotations

from .._operators import ops

one_hot = ops.one_hot
