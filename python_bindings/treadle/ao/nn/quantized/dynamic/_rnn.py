"""Recurrent layers on floats, with weights in eight bits.

A layer multiplies the whole sequence by its input weight at once, and the state by the other weight
at each step.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn._weights import WithState, check_type, empty_weight
from treadle.ao.nn.quantized.dynamic._weights import DTYPES, dynamic_linear, weight_for
from treadle.nn import functional
from treadle.nn.utils.rnn import PackedSequence

_States = Tuple[Tensor, ...]


def _lstm_step(from_input: Tensor, from_state: Tensor, states: _States) -> _States:
    into, forget, cell, out = (from_input + from_state).chunk(4, -1)
    kept = forget.sigmoid() * states[1] + into.sigmoid() * cell.tanh()
    return out.sigmoid() * kept.tanh(), kept


def _gru_step(from_input: Tensor, from_state: Tensor, states: _States) -> _States:
    (reset_x, update_x, new_x), (reset_h, update_h, new_h) = (
        part.chunk(3, -1) for part in (from_input, from_state)
    )
    update = (update_x + update_h).sigmoid()
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return (new + update * (states[0] - new),)


def _tanh_step(from_input: Tensor, from_state: Tensor, states: _States) -> _States:
    del states
    return ((from_input + from_state).tanh(),)


def _relu_step(from_input: Tensor, from_state: Tensor, states: _States) -> _States:
    del states
    return ((from_input + from_state).relu(),)


# For each kind: rows of a weight for each element of the state, tensors of a state, the step.
_KINDS: Dict[str, Any] = {
    "LSTM": (4, 2, _lstm_step),
    "GRU": (3, 1, _gru_step),
    "RNN_TANH": (1, 1, _tanh_step),
    "RNN_RELU": (1, 1, _relu_step),
}


class PackedParameter(WithState):
    """The two weights and the two biases of one layer in one direction."""

    _kept = ("param",)

    def __init__(self, param: Tuple[Tensor, Tensor, Optional[Tensor], Optional[Tensor]]) -> None:
        super().__init__()
        self.param = param

    def _check_loaded(self, name: str, value: Any) -> None:
        shapes = [tuple(part.shape) for part in self.param if part is not None]
        parts = value if isinstance(value, tuple) else ()
        if [tuple(part.shape) for part in parts if isinstance(part, Tensor)] != shapes:
            raise ValueError(f"expected weights and biases of shapes {shapes}")


def _states_of(what: str, hx: Any, count: int, shape: Tuple[int, ...], like: Tensor) -> _States:
    """The states that a caller gave, or zeros in the dtype of `like`."""
    if hx is None:
        return (_C.zeros(shape, dtype=like.dtype, device=like.device),) * count
    states = tuple(hx) if count > 1 and isinstance(hx, (tuple, list)) else (hx,)
    if len(states) != count:
        raise RuntimeError(f"{what}: expected the {count} states h and c, got {len(states)}")
    for state in states:
        got = tuple(state.shape) if isinstance(state, Tensor) else type(state).__name__
        if got != shape:
            raise RuntimeError(f"{what}: expected a state of shape {shape}, got {got}")
    return states


class _Recurrent(nn.Module):
    """The layers and directions of a network; from_float() makes it."""

    _version = 2
    _mode = ""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = _C.qint8,
    ) -> None:
        super().__init__()
        self.mode = self._mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout, self.dtype = float(dropout), dtype
        self.training = False
        rows = _KINDS[self._mode][0] * hidden_size
        weights = []
        for layer in range(num_layers):
            inputs = hidden_size * (1 + bidirectional) if layer else input_size
            for _ in range(1 + bidirectional):
                biases = [_C.zeros(rows) if bias else None for _ in range(2)]
                sizes = ((rows, inputs), (rows, hidden_size))
                parts = [empty_weight(self._get_name(), size, dtype, DTYPES) for size in sizes]
                weights.append(PackedParameter((*parts, *biases)))  # type: ignore[arg-type]
        self._all_weight_values = nn.ModuleList(weights)

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """From a layer with a QConfig; AssertionError for one with projections."""
        what = f"nn.quantized.dynamic.{cls.__name__}"
        check_type(f"{what}.from_float", mod, (getattr(nn, cls.__name__),))
        if mod.proj_size:
            raise AssertionError(f"{what}.from_float: expected proj_size=0, got {mod.proj_size}")
        weights = []
        for names in mod._all_weights:
            parts = [getattr(mod, name).detach() for name in names]
            quantized = [weight_for(what, part, mod.qconfig) for part in parts[:2]]
            biases = [part.float() for part in parts[2:]] or [None, None]
            weights.append(PackedParameter((*quantized, *biases)))
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            weights[0].param[0].dtype,
        )
        made._all_weight_values = nn.ModuleList(weights)
        return made.train(mod.training)

    def _run_direction(
        self, rows: Tensor, sizes: List[int], states: _States, weights: Any, backward: bool
    ) -> Tuple[Tensor, _States]:
        """The states after each step, as rows, and those at the end. `rows` has the batches of all
        steps one after the other, `sizes` how many rows each has: never more than the step before.
        """
        weight_ih, weight_hh, bias_ih, bias_hh = weights.param
        step = _KINDS[self._mode][2]
        projected = dynamic_linear(rows, weight_ih, bias_ih).split(sizes)
        kept = [state.clone() for state in states]
        outputs: List[Any] = [None] * len(sizes)
        order = range(len(sizes))
        for t in reversed(order) if backward else order:
            now = tuple(state[: sizes[t]] for state in kept)
            after = step(projected[t], dynamic_linear(now[0], weight_hh, bias_hh), now)
            outputs[t] = after[0]
            # Rows that have ended, or not begun, keep their state.
            kept = [
                new if len(new) == len(old) else _C.cat([new, old[len(new) :]])
                for new, old in zip(after, kept)
            ]
        return _C.cat(outputs), tuple(kept)

    def _run(self, rows: Tensor, sizes: List[int], states: _States) -> Tuple[Tensor, _States]:
        directions = 1 + self.bidirectional
        ends: List[_States] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                place = layer * directions + direction
                output, end = self._run_direction(
                    rows,
                    sizes,
                    tuple(state[place] for state in states),
                    self._all_weight_values[place],
                    direction == 1,
                )
                outputs.append(output)
                ends.append(end)
            rows = _C.cat(outputs, -1) if directions == 2 else outputs[0]
            if self.dropout and self.training and layer + 1 < self.num_layers:
                rows = functional.dropout(rows, self.dropout)
        return rows, tuple(_C.stack(parts) for parts in zip(*ends))

    def _given(self, hx: Any, batch: int, like: Tensor) -> _States:
        count = _KINDS[self._mode][1]
        shape = (self.num_layers * (1 + self.bidirectional), batch, self.hidden_size)
        return _states_of(self._get_name(), hx, count, shape, like)

    def forward(self, input: Union[Tensor, PackedSequence], hx: Any = None) -> Tuple[Any, Any]:
        """The states after each step, and those at the end; see the layer of nn.

        The input is (steps, batch, input_size), (batch, steps, input_size) with batch_first=True,
        or a PackedSequence. RuntimeError for other shapes.
        """
        packed = isinstance(input, PackedSequence)
        data: Any = input.data if isinstance(input, PackedSequence) else input
        wanted = 2 if packed else 3
        if data.dim() != wanted or data.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{self._get_name()}: expected an input of {wanted} dimensions, the last of size "
                f"{self.input_size}, got shape {tuple(data.shape)}"
            )
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        steps = data.transpose(0, 1) if self.batch_first else data
        count, batch = steps.shape[:2]
        if count == 0:
            raise RuntimeError(f"{self._get_name()}: expected one step or more, got none")
        states = self._given(hx, batch, data)
        rows, ends = self._run(steps.flatten(0, 1), [batch] * count, states)
        output = rows.unflatten(0, (count, batch))
        output = output.transpose(0, 1) if self.batch_first else output
        return output, self._returned(ends)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> Tuple[Any, Any]:
        sizes: List[int] = input.batch_sizes.tolist()
        states = self._given(hx, sizes[0], input.data)
        into, back = input.sorted_indices, input.unsorted_indices
        if hx is not None and into is not None:
            states = tuple(state.index_select(1, into) for state in states)
        rows, ends = self._run(input.data, sizes, states)
        if back is not None:
            ends = tuple(end.index_select(1, back) for end in ends)
        output = PackedSequence(rows, input.batch_sizes, into, back)
        return output, self._returned(ends)

    def _returned(self, ends: _States) -> Any:
        return ends if len(ends) == 2 else ends[0]

    def get_weight(self) -> Dict[str, Tensor]:
        """The quantized weights, by the names that the float layer has for them."""
        return self._named(0, "weight")

    def get_bias(self) -> Dict[str, Optional[Tensor]]:
        """The biases, by the names that the float layer has for them."""
        return self._named(2, "bias")

    def _named(self, first: int, what: str) -> Dict[str, Any]:
        found = {}
        directions = 1 + self.bidirectional
        for place, weights in enumerate(self._all_weight_values):
            layer, direction = divmod(place, directions)
            suffix = f"l{layer}" + ("_reverse" if direction else "")
            for offset, side in enumerate(("ih", "hh")):
                found[f"{what}_{side}_{suffix}"] = weights.param[first + offset]
        return found

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The sizes, and the settings that are not the usual ones."""
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text


class LSTM(_Recurrent):
    """nn.LSTM with weights in eight bits, or in float16."""

    _mode = "LSTM"


class GRU(_Recurrent):
    """nn.GRU with weights in eight bits, or in float16."""

    _mode = "GRU"


class _Cell(WithState):
    """One step of a layer; from_float() makes it."""

    _kept = ("_packed_weight_ih", "_packed_weight_hh", "bias_ih", "bias_hh")
    _mode = ""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = _C.qint8
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype = dtype
        rows = _KINDS[self._kind()][0] * hidden_size
        self._packed_weight_ih, self._packed_weight_hh = (
            empty_weight(self._get_name(), (rows, size), dtype, DTYPES)
            for size in (input_size, hidden_size)
        )
        self.bias_ih, self.bias_hh = (_C.zeros(rows) if bias else None for _ in range(2))

    def _kind(self) -> str:
        return self._mode

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """From a cell with a QConfig."""
        what = f"nn.quantized.dynamic.{cls.__name__}"
        check_type(f"{what}.from_float", mod, (getattr(nn, cls.__name__),))
        settings = {"nonlinearity": mod.nonlinearity} if cls is RNNCell else {}
        weights = [weight_for(what, w, mod.qconfig) for w in (mod.weight_ih, mod.weight_hh)]
        made = cls(mod.input_size, mod.hidden_size, mod.bias, weights[0].dtype, **settings)
        made._packed_weight_ih, made._packed_weight_hh = weights
        if mod.bias:
            made.bias_ih, made.bias_hh = (b.detach().float() for b in (mod.bias_ih, mod.bias_hh))
        return made.train(mod.training)

    def _step(self, input: Tensor, hx: Any) -> _States:
        if input.dim() not in (1, 2) or input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{self._get_name()}: expected an input of 1 or 2 dimensions, the last of size "
                f"{self.input_size}, got shape {tuple(input.shape)}"
            )
        _, count, step = _KINDS[self._kind()]
        shape = (*input.shape[:-1], self.hidden_size)
        states = _states_of(self._get_name(), hx, count, shape, input)
        from_input = dynamic_linear(input, self._packed_weight_ih, self.bias_ih)
        from_state = dynamic_linear(states[0], self._packed_weight_hh, self.bias_hh)
        return step(from_input, from_state, states)

    def get_weight(self) -> Dict[str, Tensor]:
        """The quantized weights."""
        return {"weight_ih": self._packed_weight_ih, "weight_hh": self._packed_weight_hh}

    def get_bias(self) -> Dict[str, Optional[Tensor]]:
        """The biases."""
        return {"bias_ih": self.bias_ih, "bias_hh": self.bias_hh}

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        """The sizes, and whether there is no bias."""
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


class LSTMCell(_Cell):
    """nn.LSTMCell with weights in eight bits, or in float16."""

    _mode = "LSTM"

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> _States:
        """(h, c) after a step from input ([batch,] input_size)."""
        return self._step(input, hx)


class GRUCell(_Cell):
    """nn.GRUCell with weights in eight bits, or in float16."""

    _mode = "GRU"

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        """The state after a step from input ([batch,] input_size)."""
        return self._step(input, hx)[0]


class RNNCell(_Cell):
    """nn.RNNCell with weights in eight bits, or in float16."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: Any = _C.qint8,
        nonlinearity: str = "tanh",
    ) -> None:
        self.nonlinearity = nonlinearity
        if f"RNN_{nonlinearity.upper()}" not in _KINDS:
            raise ValueError(f"RNNCell: expected 'tanh' or 'relu', got {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def _kind(self) -> str:
        return f"RNN_{self.nonlinearity.upper()}"

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        """The state after a step from input ([batch,] input_size)."""
        return self._step(input, hx)[0]
