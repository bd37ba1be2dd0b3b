"""Functions of the package that are written in Python and may be overridden, as operators are, by
__torch_function__ of their arguments (treadle.overrides).

    make_overridable(__name__, ["norm", "unique"])      # at the end of the module that has them
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
import types
from typing import Iterable

from treadle import _C


def make_overridable(module: str, names: Iterable[str]) -> None:
    """Replace functions of a module, and of the modules it has them from, by overridable ones.

    Anything but a Python function is left as it is.
    """
    space = vars(sys.modules[module])
    for name in names:
        function = space[name]
        if not isinstance(function, types.FunctionType):
            continue
        made = _C._overridable(function)
        space[name] = made
        home = function.__globals__
        if home.get(name) is function:
            home[name] = made
