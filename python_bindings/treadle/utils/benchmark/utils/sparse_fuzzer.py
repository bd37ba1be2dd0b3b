"""Random sparse tensors for measurements: see `fuzzer`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np

from treadle import _C
from treadle.utils.benchmark.utils.fuzzer import FuzzedTensor


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor by coordinates. sparse_dim, nnz, density and coalesced are the names of
    parameters: how many dimensions are sparse, how many entries there are, or which part of all
    places has one, and whether each place is there once."""

    def __init__(
        self,
        name: str,
        size: Tuple[Union[str, int], ...],
        min_elements: Optional[int] = None,
        max_elements: Optional[int] = None,
        dim_parameter: Optional[str] = None,
        sparse_dim: Optional[str] = None,
        nnz: Optional[str] = None,
        density: Optional[str] = None,
        coalesced: Optional[str] = None,
        dtype: Any = _C.float32,
        cuda: bool = False,
    ) -> None:
        super().__init__(
            name, size, min_elements=min_elements, max_elements=max_elements,
            dim_parameter=dim_parameter, dtype=dtype, cuda=cuda,
        )  # fmt: skip
        self._sparse_dim, self._nnz = sparse_dim, nnz
        self._density, self._coalesced = density, coalesced

    @staticmethod
    def sparse_tensor_constructor(
        size: Any, dtype: Any, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> Any:
        """Random entries at random places; `is_coalesced` makes each place be there once."""
        from treadle.sparse import sparse_coo_tensor

        values = FuzzedTensor.default_tensor_constructor((nnz, *size[sparse_dim:]), dtype)
        sizes = _C.tensor(list(size[:sparse_dim])).unsqueeze(1)
        indices = (_C.rand(sparse_dim, nnz) * sizes).to(_C.int64)
        made = sparse_coo_tensor(indices, values, tuple(size))
        return made.coalesce() if is_coalesced else made

    def _make_tensor(
        self, params: Dict[str, Any], state: np.random.RandomState
    ) -> Tuple[Any, Dict[str, Any]]:
        size, _ = self._sizes(params)
        sparse_dim = min(params.get(self._sparse_dim, len(size)), len(size))  # type: ignore[arg-type]
        places = math.prod(size[:sparse_dim])
        if self._nnz is not None and self._nnz in params:
            nnz = params[self._nnz]
        else:
            nnz = math.ceil(places * params.get(self._density, 0.1))  # type: ignore[arg-type]
        coalesced = bool(params.get(self._coalesced, False))  # type: ignore[arg-type]
        tensor = self.sparse_tensor_constructor(size, self._dtype, sparse_dim, nnz, coalesced)
        tensor = tensor.cuda() if self._cuda else tensor
        return tensor, {
            "numel": int(tensor.numel()),
            "shape": tensor.shape,
            "is_coalesced": tensor.is_coalesced(),
            "density": tensor._nnz() / places if places else 0.0,
            "sparsity": 1 - tensor._nnz() / places if places else 1.0,
            "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(),
            "is_hybrid": tensor.dense_dim() > 0,
            "dtype": str(self._dtype),
        }


__all__ = ["FuzzedSparseTensor"]
