"""The names of `functional` under PyTorch's older one."""

# SPDX-License-Identifier: Apache-2.0

from .functional import *  # noqa: F401,F403
