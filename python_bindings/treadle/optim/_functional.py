"""The names of `functional` under PyTorch's older one."""

from .functional import *  # noqa: F401,F403
