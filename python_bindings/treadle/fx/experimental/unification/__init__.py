"""Unification: the values of variables that make two structures equal.

    x, y = var("x"), var("y")
    s = unify((1, x), (y, [2]))     # {~y: 1, ~x: [2]}; False where nothing makes them equal
    reify((x, y), s)                # ([2], 1)

`match` chooses a function by patterns of this kind; `unifiable` takes in classes of a program.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.fx.experimental.unification.core import reify, unify
from treadle.fx.experimental.unification.more import unifiable
from treadle.fx.experimental.unification.variable import Var, isvar, var, variables, vars

__getattr__ = _names.attributes_of(__name__)

__all__ = ["Var", "isvar", "reify", "unifiable", "unify", "var", "variables", "vars"]
