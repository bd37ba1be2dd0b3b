"""`torch._C._jit_tree_views`: see treadle.jit._tree."""

# SPDX-License-Identifier: Apache-2.0

from treadle.jit._tree import *  # noqa: F403
