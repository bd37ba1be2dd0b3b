"""The kinds of quantization."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum

from treadle import _names


class QuantType(enum.IntEnum):
    """When the scales of activations are known: before the model runs, during, or never."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


__getattr__ = _names.attributes_of(__name__)
