"""Treadle: a tensor library whose operators are written once.

    import treadle

    x = treadle.randn(3, 4, requires_grad=True)
    (x * x).sum().backward()
    print(x.grad)

Names, arguments and results are PyTorch's, so `import treadle as torch` works. The operators come
from the extension module `treadle._C`; parts of the package that a program may not need are
imported when they are first used.
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
import typing as _typing

from treadle import _C
from treadle._C import *  # noqa: F401,F403  the operators and types
from treadle._dtypes import finfo, iinfo
from treadle.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from treadle.functional import (
    is_complex,
    is_floating_point,
    is_storage,
    is_tensor,
    nonzero,
    numel,
    typename,
    unique,
)
from treadle.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None

# Modules and names imported at their first use.
_SUBMODULES = frozenset(
    ["autograd", "functional", "nn", "optim", "random", "serialization", "testing", "utils"]
)
_LAZY = {
    "load": "treadle.serialization",
    "save": "treadle.serialization",
    "get_printoptions": "treadle._tensor_str",
    "printoptions": "treadle._tensor_str",
    "set_printoptions": "treadle._tensor_str",
    "explain": "treadle._explain",
    "__version__": "treadle._version",
}


def __getattr__(name: str) -> _typing.Any:
    if name in _SUBMODULES:
        return _importlib.import_module(f"treadle.{name}")
    if name in _LAZY:
        value = getattr(_importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'treadle' has no attribute '{name}'")


def __dir__() -> list:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
