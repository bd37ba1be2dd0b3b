"""Cases: recurrent layers, attention and transformers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, Fixed, given, normal

SEQUENCE = normal(4, 2, 3)  # of 4 steps, a batch of 2, 3 features


def _packed(module: Any, nn: Any, x: Any) -> Any:
    packed = nn.utils.rnn.pack_padded_sequence(x, [4, 2], enforce_sorted=True)
    output, state = module(packed)
    return nn.utils.rnn.pad_packed_sequence(output)[0], state


def _recurrent(name: str) -> list[Case]:
    def make(*arguments: Any, **words: Any) -> Any:
        return lambda nn: getattr(nn, name)(*arguments, **words)

    return [
        Case(name, make(3, 4), SEQUENCE),
        Case(
            f"{name} of layers",
            make(3, 3, num_layers=2, bidirectional=True, batch_first=True, bias=False),
            normal(2, 3, 3),
        ),
        Case(f"{name} packed", make(3, 3), SEQUENCE, call=_packed),
    ]


RECURRENT = [
    *_recurrent("RNN"),
    *_recurrent("LSTM"),
    *_recurrent("GRU"),
    Case("RNN relu", lambda nn: nn.RNN(3, 4, nonlinearity="relu"), SEQUENCE, weights=0.3),
    Case("LSTM projected", lambda nn: nn.LSTM(3, 4, proj_size=2), SEQUENCE),
    Case(
        "LSTM from a state",
        lambda nn: nn.LSTM(3, 4),
        SEQUENCE,
        normal(1, 2, 4),
        normal(1, 2, 4),
        call=lambda module, nn, x, h, c: module(x, (h, c)),
    ),
    Case("GRUCell", lambda nn: nn.GRUCell(3, 4), normal(2, 3), normal(2, 4)),
    Case(
        "LSTMCell",
        lambda nn: nn.LSTMCell(3, 4),
        normal(2, 3),
        normal(2, 4),
        normal(2, 4),
        call=lambda module, nn, x, h, c: module(x, (h, c)),
    ),
    Case("RNNCell", lambda nn: nn.RNNCell(3, 4), normal(2, 3), normal(2, 4)),
    Case(
        "RNNCell relu",
        lambda nn: nn.RNNCell(3, 4, bias=False, nonlinearity="relu"),
        normal(2, 3),
        normal(2, 4),
    ),
]

# The keys that a query may not see: those after it.
CAUSAL = given(np.triu(np.ones((3, 3), dtype=bool), 1))
# The keys of each of two sequences that are padding.
PADDING = given(np.array([[False, False, False], [False, False, True]]))


def _attend(module: Any, nn: Any, query: Any, mask: Any, padding: Any) -> Any:
    return module(query, query, query, attn_mask=mask, key_padding_mask=padding)


ATTENTION = [
    Case(
        "MultiheadAttention",
        lambda nn: nn.MultiheadAttention(4, 2),
        normal(3, 2, 4),
        normal(5, 2, 4),
        normal(5, 2, 4),
    ),
    Case(
        "MultiheadAttention masked",
        lambda nn: nn.MultiheadAttention(4, 2, batch_first=True),
        normal(2, 3, 4),
        CAUSAL,
        PADDING,
        call=_attend,
    ),
    Case(
        "MultiheadAttention of other sizes",
        lambda nn: nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True),
        normal(3, 2, 4),
        normal(4, 2, 3),
        normal(4, 2, 5),
        call=lambda module, nn, q, k, v: module(q, k, v, average_attn_weights=False),
    ),
    Case(
        "MultiheadAttention with zeros",
        lambda nn: nn.MultiheadAttention(4, 2, bias=False, add_zero_attn=True),
        normal(3, 2, 4),
        call=lambda module, nn, x: module(x, x, x, need_weights=False)[0],
    ),
]

SIZES = {"d_model": 4, "nhead": 2, "dim_feedforward": 5, "dropout": 0.0}


def _encoder_layer(nn: Any, **words: Any) -> Any:
    return nn.TransformerEncoderLayer(**SIZES, **words)


def _causal_float(nn: Any, x: Any) -> Any:
    return nn.Transformer.generate_square_subsequent_mask(x.size(0), dtype=x.dtype)


TRANSFORMERS = [
    Case("TransformerEncoderLayer", _encoder_layer, normal(3, 2, 4)),
    Case(
        "TransformerEncoderLayer norm_first",
        lambda nn: _encoder_layer(nn, norm_first=True, activation="gelu", batch_first=True),
        normal(2, 3, 4),
        PADDING,
        call=lambda module, nn, x, padding: module(x, src_key_padding_mask=padding),
    ),
    Case(
        "TransformerEncoder",
        lambda nn: nn.TransformerEncoder(
            _encoder_layer(nn), 2, norm=nn.LayerNorm(4), enable_nested_tensor=False
        ),
        normal(3, 2, 4),
        call=lambda module, nn, x: module(x, mask=_causal_float(nn, x)),
    ),
    Case(
        "TransformerDecoderLayer",
        lambda nn: nn.TransformerDecoderLayer(**SIZES),
        normal(3, 2, 4),
        normal(4, 2, 4),
        call=lambda module, nn, x, memory: module(x, memory, tgt_mask=_causal_float(nn, x)),
    ),
    Case(
        "TransformerDecoder",
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(**SIZES), 2),
        normal(3, 2, 4),
        Fixed(normal(4, 2, 4)),
    ),
    Case(
        "Transformer",
        lambda nn: nn.Transformer(num_encoder_layers=1, num_decoder_layers=1, **SIZES),
        normal(3, 2, 4),
        normal(4, 2, 4),
    ),
]

SEQUENCES = [*RECURRENT, *ATTENTION, *TRANSFORMERS]
