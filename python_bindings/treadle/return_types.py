"""The types of results with named parts, by the operator's name.

Example:

    values, indices = treadle.sort(x)
    isinstance(treadle.sort(x), treadle.return_types.sort)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C
from treadle.functional import _HistogramDD as histogramdd

_types = _C._return_types()
globals().update(_types)

# Results that were written to `out=` have the same types.
_PLAIN = (
    "aminmax cummax cummin frexp geqrf histogram kthvalue linalg_cholesky_ex linalg_eig "
    "linalg_eigh linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu "
    "linalg_lu_factor linalg_lu_factor_ex linalg_polar linalg_qr linalg_slogdet linalg_solve_ex "
    "linalg_svd "
    "lu_unpack max median min mode nanmedian slogdet sort svd topk triangular_solve"
)
_outs = {f"{name}_out": _types[name] for name in _PLAIN.split() if name in _types}
globals().update(_outs)
all_return_types = list(dict.fromkeys(_types.values()))


def pytree_register_structseq(cls: Any) -> None:
    """Let trees have results of the class as nodes, which they have already. TypeError for a class
    that is not of such results."""
    if cls not in all_return_types:
        raise TypeError(
            "pytree_register_structseq: expected a class of results with named parts, got "
            f"{getattr(cls, '__name__', type(cls).__name__)}"
        )


__all__ = sorted(name for name in (*_types, *_outs) if not name.startswith("_"))
__all__ += ["all_return_types", "histogramdd", "pytree_register_structseq"]
