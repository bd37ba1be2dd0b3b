"""`torch._C._jit_tree_views`: see treadle.jit._tree."""

from treadle.jit._tree import *  # noqa: F403
