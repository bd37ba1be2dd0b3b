"""The class that writes error files, by its module in PyTorch."""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributed.elastic.multiprocessing.errors import ErrorHandler

__all__ = ["ErrorHandler"]
