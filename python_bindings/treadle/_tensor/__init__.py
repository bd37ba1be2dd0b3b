"""The class of tensors by the module that programs name: `from torch._tensor import Tensor`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle._C import Tensor as Tensor
