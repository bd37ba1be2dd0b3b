"""The base of float layers that round their weights.

Example:

    layer = Linear(3, 4, qconfig=get_default_qat_qconfig())
    layer.weight_fake_quant              # rounds the weight in forward()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Tuple

from treadle import nn
from treadle._C import Tensor
from treadle.ao.nn._weights import check_type


def settings_of(mod: nn.Module) -> Dict[str, Any]:
    """The attributes of a module that nn.Module does not have: sizes, strides and such."""
    own = set(nn.Module().__dict__)
    return {name: value for name, value in vars(mod).items() if name not in own}


class RoundsWeight(nn.Module):
    """A base that comes before a layer of nn. `weight_fake_quant`, which the QConfig makes, rounds
    the weight. AssertionError without a QConfig.

    from_float() keeps the parameters of the float layer, so that an optimizer of it goes on.
    """

    _float_classes: Tuple[type, ...] = ()
    weight_fake_quant: Any

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._set_qconfig(qconfig)

    def _set_qconfig(self, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError(f"{type(self).__name__}: expected a QConfig, got {qconfig}")
        self.qconfig = qconfig
        fake = qconfig.weight()
        for tensor in self.parameters():
            fake = fake.to(tensor.device)
        self.weight_fake_quant = fake

    def _rounded_weight(self) -> Tensor:
        return self.weight_fake_quant(self.weight)

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """From a float layer with a QConfig, with its parameters themselves."""
        check_type(f"qat.{cls.__name__}.from_float", mod, cls._float_classes)
        made: Any = cls.__new__(cls)
        nn.Module.__init__(made)
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        vars(made).update(settings_of(layer))
        made._parameters.update(layer._parameters)
        made._buffers.update(layer._buffers)
        made.training = mod.training
        made._set_qconfig(mod.qconfig)
        return made

    def _to(self, kind: Any) -> Any:
        """A float layer of a class, with the same parameters."""
        made: Any = kind.__new__(kind)
        nn.Module.__init__(made)
        settings = settings_of(self)
        for name in ("qconfig", "freeze_bn"):
            settings.pop(name, None)
        vars(made).update(settings)
        made._parameters.update(self._parameters)
        made.training = self.training
        return made

    def to_float(self) -> Any:
        """The float layer."""
        return self._to(self._float_classes[0])
