"""The facts of forward that backward keeps."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from .words import Word


class Kept(Word):
    """The part of an argument or a result that a formula needs at the time of backward."""

    VALUE = "value"
    SIZES = "sizes"
    STRIDES = "strides"
    DIM = "dim"
    NUMEL = "numel"
    DTYPE = "dtype"
    DEVICE = "device"
