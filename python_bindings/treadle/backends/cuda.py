"""The switches of CUDA's libraries, and those of attention.

    treadle.backends.cuda.matmul.allow_tf32 = True   # factors of float32 may be rounded to TF32

The others are remembered and change nothing.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator, NamedTuple, Optional

from treadle._functions import settings
from treadle.nn import attention
from treadle.nn.attention import SDPBackend


class cuBLASModule:  # noqa: N801
    """The switches of matrix products."""

    _switches = {
        "allow_fp16_reduced_precision_reduction": True,
        "allow_bf16_reduced_precision_reduction": True,
        "allow_fp16_accumulation": False,
        "fp32_precision": "none",
    }

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products need not have the highest precision."""
        return settings.get_float32_matmul_precision() != "highest"

    def __getattr__(self, name: str) -> Any:
        if name not in self._switches:
            raise AttributeError(f"Unknown attribute {name}")
        return self._switches[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            settings.set_float32_matmul_precision("high" if value else "highest")
        elif name in self._switches:
            self._switches[name] = value
        else:
            raise AttributeError(f"Unknown attribute {name}")


class cuFFTPlanCache:  # noqa: N801
    """The plans of Fourier transforms that a program may drop: none."""

    size = 0
    max_size = 0

    def clear(self) -> None:
        """Nothing to drop."""

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        return self


matmul = cuBLASModule()
cufft_plan_cache = cuFFTPlanCache()
_libraries = {"linalg": "default", "blas": "default"}


def is_built() -> bool:
    """Whether this library was built for CUDA: it was not, the package treadle-cuda is."""
    return False


def preferred_linalg_library(backend: Optional[str] = None) -> str:
    """The library for linear algebra on a device; chooses it where one is given."""
    return _preferred("linalg", backend)


def preferred_blas_library(backend: Optional[str] = None) -> str:
    """The library for matrix products on a device; chooses it where one is given."""
    return _preferred("blas", backend)


def _preferred(what: str, backend: Optional[str]) -> str:
    if backend is not None:
        _libraries[what] = str(backend)
    return _libraries[what]


# ---- Attention: the choice of treadle.nn.attention.sdpa_kernel, one implementation at a time ----


def _is_enabled(backend: SDPBackend) -> bool:
    return backend in attention._cur_sdpa_kernel_backends()


def _enable(backend: SDPBackend, enabled: bool) -> None:
    others = [b for b in attention._cur_sdpa_kernel_backends() if b != backend]
    attention._chosen = others + [backend] * bool(enabled)


def flash_sdp_enabled() -> bool:
    """Whether flash attention may be used."""
    return _is_enabled(SDPBackend.FLASH_ATTENTION)


def enable_flash_sdp(enabled: bool) -> None:
    """Let flash attention be used, or not."""
    _enable(SDPBackend.FLASH_ATTENTION, enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether memory-efficient attention may be used."""
    return _is_enabled(SDPBackend.EFFICIENT_ATTENTION)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Let memory-efficient attention be used, or not."""
    _enable(SDPBackend.EFFICIENT_ATTENTION, enabled)


def math_sdp_enabled() -> bool:
    """Whether attention by matrix products may be used."""
    return _is_enabled(SDPBackend.MATH)


def enable_math_sdp(enabled: bool) -> None:
    """Let attention by matrix products be used, or not."""
    _enable(SDPBackend.MATH, enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether the attention of cuDNN may be used."""
    return _is_enabled(SDPBackend.CUDNN_ATTENTION)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Let the attention of cuDNN be used, or not."""
    _enable(SDPBackend.CUDNN_ATTENTION, enabled)


def is_flash_attention_available() -> bool:
    """Whether flash attention for a device is there."""
    return False


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[dict]:
    """Choose among the implementations for a block; an older form of nn.attention.sdpa_kernel."""
    wanted = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.MATH: enable_math,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    with attention.sdpa_kernel([backend for backend, use in wanted.items() if use]):
        yield {}


_reduced_sums = False


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """The last value given to allow_fp16_bf16_reduction_math_sdp()."""
    return _reduced_sums


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Let attention sum 16-bit numbers in 16 bits: it never does, and the switch is kept."""
    global _reduced_sums
    _reduced_sums = bool(enabled)


class SDPAParams(NamedTuple):
    """The arguments of scaled_dot_product_attention, for the questions below."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Whether flash attention for a device takes such arguments: it is not there."""
    return False


def can_use_efficient_attention(params: Any, debug: bool = False) -> bool:
    """Whether memory-efficient attention for a device takes such arguments: it is not there."""
    return False


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """Whether the attention of cuDNN takes such arguments: it is not there."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether the attention of AMD's library is there."""
    return False
