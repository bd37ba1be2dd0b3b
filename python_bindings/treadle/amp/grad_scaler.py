"""GradScaler: keeps small gradients from vanishing in float16, by scaling the loss.

The loss is multiplied by a large factor before backward, the gradients are divided by it before the
optimiser's step. Where a gradient overflows, the step is left out and the factor made smaller;
after many steps without that it is made larger. Only step() waits for the device, to learn whether
the optimiser is to do its own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional, Union

from treadle import _C, _names
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from treadle.optim import Optimizer


class OptState(enum.Enum):
    """How far an optimiser is in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """The state of one optimiser after an update(): how far it is, and by device a float32
    number that is 1 if a gradient there is infinite or NaN."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, leaves out steps with gradients that overflowed.

    device: the type of device that the gradients are on.
    init_scale: the factor at the start.
    growth_factor, growth_interval: the factor grows by growth_factor after so many steps in a row
        that were not left out.
    backoff_factor: by which the factor is multiplied when a step was left out.
    enabled: False makes every method do nothing, and step() the optimiser's step.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not _names.package().cuda.is_available():
            warnings.warn(
                "GradScaler of device 'cuda' is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        _require(growth_factor > 1.0, "The growth factor must be > 1.0.")
        _require(backoff_factor < 1.0, "The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Made on the device of the first tensor that is scaled.
        self._scale: Any = None  # a tensor from the first use on
        self._growth_tracker: Any = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    # ---- an iteration ------------------------------------------------------------------------

    def scale(self, outputs: Union[Tensor, Iterable[Tensor]]) -> Any:
        """The tensor, or each of an iterable, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimiser's parameters by the factor, to look at them or to
        clip them before step(). RuntimeError the second time in an iteration, and after step();
        ValueError for float16 gradients."""
        if not self._enabled:
            return
        self._require_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        found = _C.zeros((), dtype=_C.float32, device=inverse.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients, if that was not done, and do the optimiser's step, unless a
        gradient is infinite or NaN. Returns what the optimiser's step returns."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._require_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._scaling_step(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            found = state["found_inf_per_device"]
            _require(found, "No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: Union[None, float, Tensor] = None) -> None:
        """At the end of an iteration: make the factor smaller if a step was left out, larger if
        none was for long enough; or set it to `new_scale`."""
        if not self._enabled:
            return
        self._require_scale("update")
        if new_scale is None:
            founds = [
                found
                for state in self._per_optimizer_states.values()
                for found in state["found_inf_per_device"].values()
            ]
            _require(founds, "No inf checks were recorded prior to update.")
            _C._amp_update_scale_(
                self._scale,
                self._growth_tracker,
                sum(found.to(self._scale.device) for found in founds),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        elif isinstance(new_scale, float):
            self._scale.fill_(new_scale)
        else:
            _require(
                new_scale.device.type == self._device
                and new_scale.numel() == 1
                and not new_scale.requires_grad,
                "new_scale should be a float or a tensor of one element, on the scaler's device "
                "and with requires_grad=False.",
            )
            self._scale.copy_(new_scale)
        self._per_optimizer_states.clear()

    # ---- how it is done ----------------------------------------------------------------------

    def _lazy_init_scale_growth_tracker(self, dev: _C.device) -> None:
        self._scale = _C.full((), self._init_scale, dtype=_C.float32, device=dev)
        self._growth_tracker = _C.full((), self._init_growth_tracker, dtype=_C.int32, device=dev)

    def _maybe_opt_step(
        self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """The optimiser's step, unless a gradient is infinite or NaN."""
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[_C.device, Tensor]:
        """By device, whether a gradient there was infinite or NaN since the last update()."""
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _get_scale_async(self) -> Optional[Tensor]:
        """The factor where it is; None before the first scale()."""
        return self._scale

    def _require_scale(self, method: str) -> None:
        _require(
            self._scale is not None,
            f"Attempted {method} but _scale is None.  This may indicate your script did not use "
            "scaler.scale(loss or outputs) earlier in the iteration.",
        )

    @no_grad()
    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[_C.device, Tensor]:
        """Multiply the gradients by `inv_scale`; says by device whether one is not finite."""
        grads: dict[_C.device, list[Tensor]] = {inv_scale.device: []}
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if grad.dtype == _C.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.is_sparse:
                    grad = grad._values()
                grads.setdefault(grad.device, []).append(grad)
        found = {}
        for device, there in grads.items():
            found[device] = found_inf.to(device, copy=True)
            _C._amp_foreach_non_finite_check_and_unscale_(
                there, found[device], inv_scale.to(device)
            )
        return found

    def _scaling_step(
        self, optimizer: Optimizer, state: dict[str, Any], args: tuple, kwargs: dict
    ) -> Any:
        """The step of an optimiser that unscales gradients, and leaves out a step, by itself: it
        finds `grad_scale` and `found_inf` among its attributes."""
        if state["stage"] is OptState.READY:
            one = _C.ones((), dtype=_C.float32, device=self._scale.device)
            state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, one * 0, True)
        own = getattr(optimizer, "grad_scale", None)
        unscaled = state["stage"] is OptState.UNSCALED
        optimizer.grad_scale = own if unscaled else self._scale * (1 if own is None else own)
        found = state["found_inf_per_device"].values()
        optimizer.found_inf = sum(f.to(self._scale.device) for f in found)
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale
            del optimizer.found_inf

    # ---- settings and state ------------------------------------------------------------------

    def get_scale(self) -> float:
        """The factor; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        """How many steps in a row were not left out."""
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return self._growth_tracker.item()

    def get_growth_factor(self) -> float:
        """By what the factor grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the factor grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the factor is multiplied when a step was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the factor is multiplied when a step was left out."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps the factor grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor and how it changes, as numbers; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what state_dict() returned. RuntimeError for that of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved "
                "from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._enabled:
            _require(
                not self._per_optimizer_states,
                "A GradScaler instance may only be pickled at the beginning "
                "of an iteration, or at the end after scaler.update().",
            )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _require(condition: Any, message: str) -> None:
    """An assertion of PyTorch's, checked also where assertions are off."""
    if not condition:
        raise AssertionError(message)
