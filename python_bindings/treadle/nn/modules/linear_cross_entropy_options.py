"""Options for how LinearCrossEntropyLoss computes; they change nothing here."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional


@dataclass
class LinearCrossEntropyOptions:
    """How much memory may be spent in PyTorch; the loss is the same."""

    allow_retain_graph: bool = False
    batch_chunk_size: Optional[int] = None
    chunking_method: Optional[str] = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None
