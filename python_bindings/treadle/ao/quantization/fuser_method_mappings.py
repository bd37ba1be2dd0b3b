"""Which layers in a row become one, and how.

Example:

    get_fuser_method((nn.Conv2d, nn.ReLU))(False, conv, relu)       # intrinsic.ConvReLU2d
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from treadle import _names, nn
from treadle.ao.nn import intrinsic as nni
from treadle.ao.quantization.utils import get_combined_dict
from treadle.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
]

# For each layer: its normalisation, itself with that, with that and relu(), and with relu() alone.
_ROWS: Dict[Any, Tuple[Any, Any, Any, Any]] = {
    nn.Conv1d: (nn.BatchNorm1d, nni.ConvBn1d, nni.ConvBnReLU1d, nni.ConvReLU1d),
    nn.Conv2d: (nn.BatchNorm2d, nni.ConvBn2d, nni.ConvBnReLU2d, nni.ConvReLU2d),
    nn.Conv3d: (nn.BatchNorm3d, nni.ConvBn3d, nni.ConvBnReLU3d, nni.ConvReLU3d),
}


def _check_modes(what: str, *layers: nn.Module) -> None:
    if len({layer.training for layer in layers}) != 1:
        modes = ", ".join("training" if layer.training else "evaluation" for layer in layers)
        raise AssertionError(f"{what}: expected all layers in one mode, got {modes}")


def _check_normalisation(what: str, features: int, bn: Any) -> None:
    if bn.num_features != features or not bn.affine or not bn.track_running_stats:
        raise AssertionError(
            f"{what}: expected a normalisation of {features} features with affine=True and "
            f"track_running_stats=True, got {bn}"
        )


def _fused_class(what: str, conv: nn.Module, place: int) -> Any:
    if type(conv) not in _ROWS:
        raise NotImplementedError(
            f"{what}: expected Conv1d, Conv2d or Conv3d, got {type(conv).__name__}"
        )
    return _ROWS[type(conv)][place]


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> nn.Module:
    """A convolution with the normalisation in its weights; for training (`is_qat`) both as one.
    AssertionError where one is in training mode and the other is not."""
    _check_modes("fuse_conv_bn", conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_normalisation("fuse_conv_bn", conv.out_channels, bn)
    return _fused_class("fuse_conv_bn", conv, 1)(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: nn.Module) -> nn.Module:
    """The same, with relu() after it."""
    _check_modes("fuse_conv_bn_relu", conv, bn, relu)
    if not is_qat:
        fused = _fused_class("fuse_conv_bn_relu", conv, 3)
        return fused(fuse_conv_bn_eval(conv, bn), relu)
    _check_normalisation("fuse_conv_bn_relu", conv.out_channels, bn)
    return _fused_class("fuse_conv_bn_relu", conv, 2)(conv, bn, relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> nn.Module:
    """A linear layer with the normalisation in its weights; for training both as one."""
    _check_modes("fuse_linear_bn", linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_normalisation("fuse_linear_bn", linear.out_features, bn)
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> nn.Module:
    """A transposed convolution with the normalisation in its weights. NotImplementedError for
    training."""
    _check_modes("fuse_convtranspose_bn", convt, bn)
    if is_qat:
        raise NotImplementedError(
            "fuse_convtranspose_bn: a transposed convolution is not fused for training"
        )
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _in_a_row(kind: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    def fuse(is_qat: bool, first: nn.Module, second: nn.Module) -> nn.Module:
        del is_qat
        return kind(first, second)

    return fuse


# For each row of classes, the function (is_qat, *layers) that makes one layer.
METHODS: Dict[Any, Callable[..., nn.Module]] = {
    **{(conv, row[0]): fuse_conv_bn for conv, row in _ROWS.items()},
    **{(conv, row[0], nn.ReLU): fuse_conv_bn_relu for conv, row in _ROWS.items()},
    **{(conv, nn.ReLU): _in_a_row(row[3]) for conv, row in _ROWS.items()},
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _in_a_row(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _in_a_row(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _in_a_row(nni.BNReLU3d),
    (nn.ConvTranspose1d, nn.BatchNorm1d): fuse_convtranspose_bn,
    (nn.ConvTranspose2d, nn.BatchNorm2d): fuse_convtranspose_bn,
    (nn.ConvTranspose3d, nn.BatchNorm3d): fuse_convtranspose_bn,
}


def get_fuser_method(
    op_list: Tuple[type, ...], additional_fuser_method_mapping: Optional[Dict[Any, Any]] = None
) -> Callable[..., nn.Module]:
    """The function (is_qat, *layers) that makes layers of these classes one; AssertionError where
    there is none."""
    methods = get_combined_dict(METHODS, additional_fuser_method_mapping or {})
    if op_list not in methods:
        names = ", ".join(kind.__name__ for kind in op_list)
        raise AssertionError(f"fuse_modules: layers of these classes cannot be one: {names}")
    return methods[op_list]


__getattr__ = _names.attributes_of(__name__)
