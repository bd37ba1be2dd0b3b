"""Names of PyTorch's extension module, `torch._C`, that are written in Python here.

    treadle._C._log_api_usage_once("mine")      # is looked up in this package
    from treadle._C import keys                 # a file of its folder

The functions that many programs ask for are here; a module below `torch._C` is a file.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any

from treadle import _names
from treadle._as_written.torchscript import (
    _jit_can_fuse_on_cpu,
    _jit_can_fuse_on_gpu,
    _jit_override_can_fuse_on_cpu,
    _jit_override_can_fuse_on_gpu,
    _jit_set_profiling_executor,
    _jit_set_profiling_mode,
    _jit_set_texpr_fuser_enabled,
    _jit_texpr_fuser_enabled,
)
from treadle._C import Tensor
from treadle._extension.keys import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

# Names of TorchScript, which few programs ask for: the package has them too.
_OF_SCRIPT = [
    "ErrorReport",
    *(name for name, m in _names.package()._LAZY.items() if m.startswith("treadle.jit._")),
]

__all__ = [
    *_OF_SCRIPT,
    "DispatchKey",
    "DispatchKeySet",
    "_ExcludeDispatchKeyGuard",
    "TensorBase",
    "_TensorMeta",
    "_are_functorch_transforms_active",
    "_get_accelerator",
    "_get_cudnn_enabled",
    "_get_tracing_state",
    "_is_tracing",
    "_jit_can_fuse_on_cpu",
    "_jit_can_fuse_on_gpu",
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_set_texpr_fuser_enabled",
    "_jit_texpr_fuser_enabled",
    "_log_api_usage_metadata",
    "_log_api_usage_once",
]


def __getattr__(name: str) -> Any:
    if name not in _OF_SCRIPT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_names.package(), name)


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard
TensorBase = Tensor
_TensorMeta = type(Tensor)


def _are_functorch_transforms_active() -> bool:
    """Whether tensors are wrapped by a transform of functions: inside one they are plain here."""
    return False


def _get_accelerator(check: Any = None) -> Any:
    """The device beside the CPU; the CPU where there is none."""
    from treadle import accelerator
    from treadle._C import device

    return accelerator.current_accelerator() or device("cpu")


def _log_api_usage_once(event: str) -> None:
    """Does nothing: nobody counts uses."""
    if not isinstance(event, str):
        raise TypeError(f"_log_api_usage_once: expected a str, got {type(event).__name__}")


def _log_api_usage_metadata(event: str, metadata_map: Any) -> None:
    """Does nothing, as _log_api_usage_once()."""


def _get_cudnn_enabled() -> bool:
    """Whether recurrent layers on CUDA devices may go by cuDNN: backends.cudnn.enabled."""
    from treadle import backends

    return backends.cudnn.enabled


def _is_tracing() -> bool:
    """Whether jit.trace() records the program: jit.is_tracing()."""
    from treadle import jit

    return jit.is_tracing()


def _get_tracing_state() -> Any:
    """The state of jit.trace(): for _get_trace_graph() an object with push_scope() and pop_scope(),
    True for others; None outside of them."""
    from treadle import jit

    if not jit.is_tracing():
        return None
    graphs = sys.modules.get("treadle.jit._trace_graph")
    state = None if graphs is None else graphs.current
    return True if state is None else state
