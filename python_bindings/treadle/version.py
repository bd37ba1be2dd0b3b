"""Answers to a program about `torch.version`: the version it follows, and what it was built for.

`__version__` is PyTorch's, since programs compare it with PyTorch's; the part after '+' is
Treadle's.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from treadle import _version
from treadle.torch_version import TorchVersion

treadle = _version.__version__
__version__ = TorchVersion(f"{_version.FOLLOWED}+treadle.{treadle}")
debug = False
git_version: Optional[str] = None
# The versions of the toolkits of devices: there is none of these.
cuda: Optional[str] = None
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
