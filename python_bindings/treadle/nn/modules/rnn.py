"""Recurrent layers over whole sequences: RNN, LSTM and GRU, stacked and in both directions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any, Optional, Union

from treadle import _C
from treadle._C import Tensor

from .. import init
from .._operators import ops
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The weights of all layers and directions, named `weight_ih_l0`, `weight_hh_l0_reverse`,
    ..."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if (
            not isinstance(dropout, numbers.Number)
            or isinstance(dropout, bool)
            or not 0 <= dropout <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _GATES[mode] * hidden_size
        output_size = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else output_size * directions
            for direction in range(directions):
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                sizes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, inputs),
                    "weight_hh": (rows, output_size),
                }
                if bias:
                    sizes["bias_ih"] = sizes["bias_hh"] = (rows,)
                if proj_size:
                    sizes["weight_hr"] = (proj_size, hidden_size)
                for name, size in sizes.items():
                    value = Parameter(_C.empty(size, device=device, dtype=dtype))
                    self.register_parameter(name + suffix, value)
                self._all_weights.append([name + suffix for name in sizes])
        self.reset_parameters()

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    # PyTorch keeps both lists in the module, and looks for them in one that comes out of a file.

    def __getstate__(self) -> dict:
        own, names = super().__getstate__(), self._flat_weights_names
        if any(name not in self._parameters for name in names):
            return own  # some are computed from others
        state: dict[str, Any] = {}
        for name, value in own.items():
            if name == "_all_weights":
                state.update(_flat_weights_names=names, _all_weights=value)
                state["_flat_weights"] = self._flat_weights
            elif not name.startswith("_flat_weight"):
                state[name] = value
        return state

    def __setstate__(self, state: dict) -> None:
        found = {
            name: value for name, value in state.items() if not name.startswith("_flat_weight")
        }
        super().__setstate__(found)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: weights need not lie side by side here."""

    def reset_parameters(self) -> None:
        """Everything uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Optional[Tensor]) -> None:
        """Raise unless the input has the right dimensions."""
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def _zeros(self, input: Tensor, batch: int, size: int) -> Tensor:
        count = self.num_layers * (2 if self.bidirectional else 1)
        return _C.zeros((count, batch, size), dtype=input.dtype, device=input.device)

    def _check_state(self, state: Tensor, batch: int, size: int, what: str) -> None:
        wanted = (self.num_layers * (2 if self.bidirectional else 1), batch, size)
        if tuple(state.shape) != wanted:
            raise RuntimeError(f"Expected {what} size {wanted}, got {list(state.shape)}")

    def _operate(self, name: str, first: tuple, state: Any, batch_first: tuple) -> tuple:
        return getattr(ops, name)(
            *first,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            *batch_first,
        )

    def _states(self, hx: Any) -> list[Tensor]:
        """The states as a list: one, or h and c."""
        return [hx]

    def _state_sizes(self) -> list[tuple[int, str]]:
        return [(self.hidden_size, "hidden")]

    def _run(self, input: Tensor, states: list[Tensor], batch_sizes: Optional[Tensor]) -> tuple:
        """The output, and the states after the last step as a list."""
        name = self.mode.lower()
        if batch_sizes is not None:
            output, state = self._operate(name, (input, batch_sizes), states[0], ())
        else:
            output, state = self._operate(name, (input,), states[0], (self.batch_first,))
        return output, [state]

    def forward(self, input: Union[Tensor, PackedSequence], hx: Any = None) -> tuple:
        """(output, state after the last step); the state is (h, c) for an LSTM."""
        packed = isinstance(input, PackedSequence)
        batched = True
        data: Tensor
        batch_sizes: Optional[Tensor]
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            batch = int(batch_sizes[0])
        else:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D "
                    "instead"
                )
            batched = input.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            data = input if batched else input.unsqueeze(batch_dim)
            batch_sizes = sorted_indices = unsorted_indices = None
            batch = data.shape[batch_dim]
        self.check_input(data, batch_sizes)
        if hx is None:
            states = [self._zeros(data, batch, size) for size, _ in self._state_sizes()]
        else:
            states = self._states(hx)
            dims = {state.dim() for state in states}
            if dims != {3 if batched else 2}:
                kind = "batched 3-D" if batched else "unbatched 2-D"
                raise RuntimeError(
                    f"For {kind} input, hx should also be {3 if batched else 2}-D but got "
                    f"({', '.join(str(state.dim()) for state in states)})-D tensor"
                )
            if not batched:
                states = [state.unsqueeze(1) for state in states]
            for state, (size, what) in zip(states, self._state_sizes()):
                self._check_state(state, batch, size, f"hidden[{0 if what == 'hidden' else 1}]")
            if sorted_indices is not None:
                states = [state.index_select(1, sorted_indices) for state in states]
        output, states = self._run(data, states, batch_sizes)
        if unsorted_indices is not None:
            states = [state.index_select(1, unsorted_indices) for state in states]
        if packed:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        elif not batched:
            output = output.squeeze(batch_dim)
            states = [state.squeeze(1) for state in states]
        return output, states[0] if len(states) == 1 else tuple(states)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    """h' = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu, step by step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory; with proj_size the hidden state is projected to that size."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _states(self, hx: Any) -> list[Tensor]:
        return [hx[0], hx[1]]

    def _state_sizes(self) -> list[tuple[int, str]]:
        return [(self.proj_size or self.hidden_size, "hidden"), (self.hidden_size, "cell")]

    def _run(self, input: Tensor, states: list[Tensor], batch_sizes: Optional[Tensor]) -> tuple:
        if batch_sizes is not None:
            output, h, c = self._operate("lstm", (input, batch_sizes), states, ())
        else:
            output, h, c = self._operate("lstm", (input,), states, (self.batch_first,))
        return output, [h, c]


class RNNCellBase(Module):
    """The weights of one step."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        sizes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
        }
        sizes["bias_ih"] = sizes["bias_hh"] = (rows,)
        for name, size in sizes.items():
            value = None
            if bias or name.startswith("weight"):
                value = Parameter(_C.empty(size, device=device, dtype=dtype))
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Everything uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _step(self, name: str, input: Tensor, hx: Any) -> Any:
        """One step of the operator, for a batch or one sample."""
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        several = isinstance(hx, (tuple, list))
        if hx is not None:
            for state in hx if several else (hx,):
                if state.dim() not in (1, 2):
                    raise ValueError(
                        f"{type(self).__name__}: Expected hidden to be 1D or 2D, got "
                        f"{state.dim()}D instead"
                    )
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
        if hx is None:
            hx = _C.zeros(
                (input.shape[0], self.hidden_size), dtype=input.dtype, device=input.device
            )
            if name == "lstm_cell":
                hx = [hx, hx]
        elif single:
            hx = [state.unsqueeze(0) for state in hx] if several else hx.unsqueeze(0)
        result = getattr(ops, name)(
            input,
            list(hx) if name == "lstm_cell" else hx,
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
        )
        if not single:
            return result
        if isinstance(result, tuple):
            return tuple(state.squeeze(0) for state in result)
        return result.squeeze(0)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class _GatedCell(RNNCellBase):
    """A cell whose only settings are sizes; `_gates` is how many times hidden_size rows its weights
    have."""

    _gates = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, self._gates, device, dtype)


class LSTMCell(_GatedCell):
    """One step of LSTM: (h, c) gives the next (h, c)."""

    _gates = 4

    def forward(
        self, input: Tensor, hx: Optional[tuple[Tensor, Tensor]] = None
    ) -> tuple[Tensor, Tensor]:
        return self._step("lstm_cell", input, hx)


class GRUCell(_GatedCell):
    """One step of GRU."""

    _gates = 3

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        return self._step("gru_cell", input, hx)
