"""Recurrent cells and layers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import Maker, Sample, of_cpu, samples


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: Any, state: Any, w: list) -> Any:
    """One step; state is (h,) or (h, c), w is w_ih, w_hh, b_ih, b_hh, w_hr, None for what is not
    there."""
    h = state[0]
    xs = x @ w[0].T + (0 if w[2] is None else w[2])
    hs = h @ w[1].T + (0 if w[3] is None else w[3])
    if kind == "tanh":
        return (np.tanh(xs + hs),)
    if kind == "relu":
        return (np.maximum(xs + hs, 0),)
    if kind == "gru":
        n = xs.shape[-1] // 3
        r, z = _sigmoid((xs + hs)[..., :n]), _sigmoid((xs + hs)[..., n : 2 * n])
        new = np.tanh(xs[..., 2 * n :] + r * hs[..., 2 * n :])
        return ((1 - z) * new + z * h,)
    i, f, g, o = np.split(xs + hs, 4, -1)
    c = _sigmoid(f) * state[1] + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(c)
    return (h if w[4] is None else h @ w[4].T, c)


def _weights(make: Maker, gates: int, inputs: int, units: int, biases: bool, out: int = 0) -> list:
    rows = gates * units
    w = [make((rows, inputs), -1, 1), make((rows, out or units), -1, 1)]
    if biases:
        w += [make((rows,), -1, 1), make((rows,), -1, 1)]
    return w + ([make((out, units), -1, 1)] if out else [])


def sequence(
    kind: str, steps: list, states: tuple, params: list, biases: bool, layers: int, both: bool
) -> Any:
    """All layers over a list of batches, where later ones may have fewer rows: the outputs and the
    last states."""
    directions = 2 if both else 1
    per = len(params) // (layers * directions)
    ends: list = []
    for layer in range(layers):
        outputs: list = []
        for direction in range(directions):
            index = layer * directions + direction
            w = list(params[index * per : (index + 1) * per])
            full = w[:2] + (w[2:4] if biases else [None, None])
            full.append(w[-1] if per == (5 if biases else 3) else None)
            state = [s[index].copy() for s in states]
            out: list = [None] * len(steps)
            order = range(len(steps)) if direction == 0 else reversed(range(len(steps)))
            for t in order:
                rows = len(steps[t])
                new = step(kind, steps[t], [s[:rows] for s in state], full)
                for s, value in zip(state, new):
                    s[:rows] = value
                out[t] = new[0]
            outputs.append(out)
            ends.append(state)
        steps = [np.concatenate(parts, -1) for parts in zip(*outputs)]
    return steps, [np.stack([e[i] for e in ends]) for i in range(len(states))]


def _reference(kind: str) -> Callable[..., Any]:
    def expect(
        x: Any,
        hx: Any,
        params: Any,
        biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        both: bool,
        batch_first: bool,
    ) -> Any:
        states = tuple(hx) if kind == "lstm" else (hx,)
        x = x.swapaxes(0, 1) if batch_first else x
        out, ends = sequence(kind, list(x), states, list(params), biases, layers, both)
        y = np.stack(out)
        return (y.swapaxes(0, 1) if batch_first else y, *ends)

    return expect


def _packed_reference(kind: str) -> Callable[..., Any]:
    def expect(
        data: Any,
        sizes: Any,
        hx: Any,
        params: Any,
        biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        both: bool,
    ) -> Any:
        states = tuple(hx) if kind == "lstm" else (hx,)
        steps = np.split(data, np.cumsum(sizes)[:-1])
        out, ends = sequence(kind, steps, states, list(params), biases, layers, both)
        return (np.concatenate(out), *ends)

    return expect


def _layers(name: str, kind: str, gates: int) -> None:
    def state(make: Maker, count: int, batch: int, units: int, out: int) -> Any:
        h = make((count, batch, out or units), -1, 1)
        return [h, make((count, batch, units), -1, 1)] if kind == "lstm" else h

    def params(
        make: Maker, inputs: int, units: int, biases: bool, layers: int, both: bool, out: int = 0
    ) -> list:
        directions = 2 if both else 1
        w = []
        for layer in range(layers):
            for _ in range(directions):
                width = inputs if layer == 0 else (out or units) * directions
                w += _weights(make, gates, width, units, biases, out)
        return w

    def whole(make: Maker) -> Iterator[Sample]:
        cases = [
            (3, 2, 2, 3, True, 1, False, False, 0),
            (2, 2, 2, 2, False, 1, True, True, 0),
            (2, 1, 2, 2, True, 2, True, False, 0),
        ]
        if kind == "lstm":
            cases.append((2, 2, 2, 3, True, 2, False, False, 2))
        for steps, batch, inputs, units, biases, layers, both, first, out in cases:
            yield Sample(
                make((batch, steps, inputs) if first else (steps, batch, inputs), -1, 1),
                state(make, layers * (2 if both else 1), batch, units, out),
                params(make, inputs, units, biases, layers, both, out),
                biases,
                layers,
                0.0,
                False,
                both,
                first,
                expect=_reference(kind),
                loose=16,  # rounding adds up from step to step
                grad=steps * layers < 4 and layers == 1,
            )

    def packed(make: Maker) -> Iterator[Sample]:
        for both in (False, True):
            yield Sample(
                make((6, 2), -1, 1),
                of_cpu(np.array([3, 2, 1], dtype=np.int64)),
                state(make, 2 if both else 1, 3, 2, 0),
                params(make, 2, 2, True, 1, both),
                True,
                1,
                0.0,
                False,
                both,
                expect=_packed_reference(kind),
                loose=16,
            )

    samples(f"{name}.input")(whole)
    samples(f"{name}.data")(packed)


_layers("lstm", "lstm", 4)
_layers("gru", "gru", 3)
_layers("rnn_tanh", "tanh", 1)
_layers("rnn_relu", "relu", 1)


def _cell(name: str, kind: str, gates: int) -> None:
    def expect(x: Any, hx: Any, *w: Any) -> Any:
        states = tuple(hx) if kind == "lstm" else (hx,)
        result = step(kind, x, states, list(w) + [None] * (5 - len(w)))
        return result if kind == "lstm" else result[0]

    def make_samples(make: Maker) -> Iterator[Sample]:
        for batch, biases in ((2, True), (3, False), (0, True)):
            hx: Any = make((batch, 3), -1, 1)
            if kind == "lstm":
                hx = [hx, make((batch, 3), -1, 1)]
            w = _weights(make, gates, 2, 3, biases)
            yield Sample(make((batch, 2), -1, 1), hx, *w, expect=expect, loose=8, grad=batch > 0)

    samples(name)(make_samples)


_cell("lstm_cell", "lstm", 4)
_cell("gru_cell", "gru", 3)
_cell("rnn_tanh_cell", "tanh", 1)
_cell("rnn_relu_cell", "relu", 1)
