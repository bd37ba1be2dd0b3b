"""What backward keeps of forward."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from .words import Word


class Kept(Word):
    """What of an argument or a result a formula needs at the time of backward."""

    VALUE = "value"
    SIZES = "sizes"
    STRIDES = "strides"
    DIM = "dim"
    NUMEL = "numel"
    DTYPE = "dtype"
    DEVICE = "device"
