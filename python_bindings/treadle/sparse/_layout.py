"""The value `treadle.sparse_coo` of attributes `layout`; and the values that no tensor here has,
which programs compare with."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C, _names


class _SparseLayout:
    """A layout that the extension module does not have. To isinstance() it is a treadle.layout."""

    __class__ = property(lambda self: _C.layout)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return _names.in_words_of_the_program(f"{_names.PACKAGE}.{self._name}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _layout, (self._name,)


def _layout(name: str) -> Any:
    return globals()[name]


sparse_coo = _SparseLayout("sparse_coo")
sparse_csr = _SparseLayout("sparse_csr")
sparse_csc = _SparseLayout("sparse_csc")
sparse_bsr = _SparseLayout("sparse_bsr")
sparse_bsc = _SparseLayout("sparse_bsc")
jagged = _SparseLayout("jagged")
