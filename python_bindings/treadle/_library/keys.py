"""Dispatch keys: the words by which programs say what a kernel is for.

Treadle chooses a kernel by the device's name. The keys are read as what they mean there: "CPU" is
the device cpu, "CompositeImplicitAutograd" all devices.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import NamedTuple, Optional

from treadle import _C

EVERYWHERE = {
    "": "composite",
    "CompositeImplicitAutograd": "composite",
    "CompositeExplicitAutograd": "default",
    "CompositeExplicitAutogradNonFunctional": "default",
    "Autograd": "autograd",
    "Autocast": "autocast",
}
# Kinds of tensors, each with a key for every device of PyTorch's; and the keys beside those.
_KINDS = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd")
_DEVICES = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"
).split()
_AUTOCAST = "CPU MPS XPU HPU IPU CUDA PrivateUse1".split()
_OF_DEVICES = [
    *(f"{kind}{device}" for kind in _KINDS for device in _DEVICES),
    *(f"Autocast{device}" for device in _AUTOCAST),
]
ALL_KEYS = [
    *(
        "Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd "
        "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd AutogradNestedTensor "
        "AutogradOther Autograd Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView "
        "PythonTLSSnapshot Python FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode "
        "FuncTorchBatchedDecomposition FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper "
        "PythonDispatcher PreDispatch Functionalize Dense Quantized Sparse SparseCsr NestedTensor "
        "AutogradFunctionality"
    ).split(),
    *_OF_DEVICES,
]


class Place(NamedTuple):
    """Where a kernel goes: `kind` is "device", "composite", "default", "autograd", "autocast", or
    "elsewhere" for tensors that there are none of; `device` is None where it is for all."""

    kind: str
    device: Optional[str]


def device_of_key(key: str) -> Optional[str]:
    """The device that a key, or a device's own name, speaks of; None for none."""
    name = key.rpartition(".")[2]  # DispatchKey.CPU
    for device in _C._library_devices():
        if name == device or name.lower() == device:
            return device
    return None


def read_key(key: str) -> Place:
    """The meaning of a key; RuntimeError for an unknown one."""
    name = key.rpartition(".")[2]
    if name in EVERYWHERE:
        return Place(EVERYWHERE[name], None)
    device = device_of_key(name)
    if device is not None:
        return Place("device", device)
    for kind in ("Autograd", "Autocast"):
        device = device_of_key(name[len(kind) :]) if name.startswith(kind) else None
        if device is not None:
            return Place(kind.lower(), device)
    if name in _OF_DEVICES:
        return Place("elsewhere", None)
    known = [*(k for k in EVERYWHERE if k), *_C._library_devices()]
    raise RuntimeError(
        f"impl: expected a dispatch key or a device, one of {', '.join(known)}, got '{key}'"
    )
