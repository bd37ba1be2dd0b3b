"""The types of results with named parts, by the operator's name.

    values, indices = treadle.sort(x)
    isinstance(treadle.sort(x), treadle.return_types.sort)
"""

from __future__ import annotations

from treadle import _C

_types = _C._return_types()
globals().update(_types)

# Results that were written to `out=` have the same types.
_PLAIN = (
    "aminmax cummax cummin frexp geqrf histogram kthvalue linalg_cholesky_ex linalg_eig "
    "linalg_eigh linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu "
    "linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet linalg_solve_ex linalg_svd "
    "lu_unpack max median min mode nanmedian slogdet sort svd topk triangular_solve"
)
_outs = {f"{name}_out": _types[name] for name in _PLAIN.split() if name in _types}
globals().update(_outs)
all_return_types = list(dict.fromkeys(_types.values()))

__all__ = sorted(name for name in (*_types, *_outs) if not name.startswith("_"))
__all__.append("all_return_types")
