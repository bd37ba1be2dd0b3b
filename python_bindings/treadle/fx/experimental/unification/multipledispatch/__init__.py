"""Functions with several implementations, chosen by the types of all their arguments.

    @dispatch(int, object)
    def combine(a, b): ...

    @dispatch(str, [int])          # a str, and then any number of ints
    def combine(a, *b): ...

The most specific signature that fits a call is asked first.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.fx.experimental.unification.multipledispatch.core import dispatch
from treadle.fx.experimental.unification.multipledispatch.dispatcher import (
    Dispatcher,
    MDNotImplementedError,
    halt_ordering,
    restart_ordering,
)

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "Dispatcher",
    "MDNotImplementedError",
    "dispatch",
    "halt_ordering",
    "restart_ordering",
]
