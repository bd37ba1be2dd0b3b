"""Layers on floats whose weights are quantized; what they are multiplied by is quantized for each
call, with a scale of its own."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.ao.nn.quantized.dynamic._linear import Linear
from treadle.ao.nn.quantized.dynamic._rnn import (
    GRU,
    LSTM,
    GRUCell,
    LSTMCell,
    RNNCell,
)

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell"]

__getattr__ = _names.attributes_of(__name__)
