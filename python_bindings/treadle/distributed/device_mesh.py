"""A mesh: the processes of a program in an array of one or more dimensions, each with a group.

    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    mesh["tp"].get_group()            # the processes that differ from this one in "tp" only
    mesh.get_coordinate()             # (0, 3) in the process of rank 3

All processes make a mesh together, with the same arguments.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
import os
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from treadle import _C, _names
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed.process_group import ProcessGroup

Ranks = Tuple[int, ...]


class _MeshEnv(threading.local):
    """The meshes that this thread has entered."""

    def __init__(self) -> None:
        self.mesh_stack: List[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        """The innermost one. RuntimeError if there is none."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]


_mesh_resources = _MeshEnv()

# The group that a mesh made last for these ranks, and the group of all processes at that time: a
# mesh that was pickled finds it.
_groups: Dict[Ranks, Tuple[ProcessGroup, Any]] = {}


def _known(row: Ranks) -> Optional[ProcessGroup]:
    """The group of these ranks that a mesh made since the program was initialised."""
    if not dist.is_initialized():
        return None
    if row == tuple(range(dist.get_world_size())):
        return dist.group.WORLD
    group, world = _groups.get(row, (None, None))
    return group if world is dist.group.WORLD else None


def _own_rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def _strides(shape: Sequence[int]) -> Ranks:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _steps(shape: Ranks, strides: Ranks) -> List[int]:
    """How far each element of an array with these strides is from the first."""
    indices = itertools.product(*map(range, shape))
    return [sum(i * step for i, step in zip(index, strides)) for index in indices]


def _new_groups(rows: List[Ranks], options: Tuple[Any, Any]) -> Optional[ProcessGroup]:
    """The group of those of `rows` that this process is in; every process makes all of them."""
    everyone = tuple(range(dist.get_world_size()))
    backend, pg_options = options
    mine = None
    for row in rows:
        if row == everyone and options == (None, None):
            made: Any = dist.group.WORLD
        else:
            made = dist.new_group(list(row), backend=backend, pg_options=pg_options)
        if dist.get_rank() in row:
            mine = made
            _groups[row] = made, dist.group.WORLD
    return mine


class DeviceMesh:
    """An array of processes, given by their ranks.

    Args:
        device_type: where the tensors of the mesh are: "cpu", "meta", ...; without an index.
        mesh: the ranks: nested sequences of ints, or a tensor of ints. No rank occurs twice.
        mesh_dim_names: a name for each dimension, to slice the mesh with.
        backend_override: for each dimension (backend, options) of its groups; None, None for the
            usual ones.
        preserve_rank_order: refused if true, as groups list their ranks in ascending order.

    RuntimeError if there are more ranks than processes. Makes the group of all processes if there
    is none.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Optional[Sequence[str]] = None,
        backend_override: Optional[Sequence[Tuple[Any, Any]]] = None,
        preserve_rank_order: bool = False,
        _init_backend: bool = True,
        _rank: Optional[int] = None,
    ) -> None:
        if preserve_rank_order:
            raise ValueError(
                "DeviceMesh: expected preserve_rank_order = False, as groups list their ranks in "
                "ascending order, got True"
            )
        if not isinstance(mesh, Tensor):
            mesh = _C.tensor(mesh, device="cpu")
        self._shape: Ranks = tuple(mesh.shape)
        self._ranks: Ranks = tuple(int(r) for r in mesh.flatten().tolist())
        if len(set(self._ranks)) != len(self._ranks):
            raise ValueError(f"DeviceMesh: expected different ranks, got {mesh.tolist()}")
        if any(list(row) != sorted(row) for dim in range(mesh.dim()) for row in self._rows(dim)):
            raise ValueError(
                f"DeviceMesh: expected ascending ranks along each dimension, got {mesh.tolist()}"
            )
        if mesh_dim_names is not None and len(mesh_dim_names) != len(self._shape):
            raise ValueError(
                f"DeviceMesh: expected a name for each of {len(self._shape)} dimensions, got "
                f"mesh_dim_names = {tuple(mesh_dim_names)}"
            )
        options = list(backend_override or [(None, None)] * len(self._shape))
        if len(options) != len(self._shape):
            raise ValueError(
                "DeviceMesh: expected a backend_override for each of "
                f"{len(self._shape)} dimensions, got {len(options)}"
            )
        self._own_rank: Optional[int]
        self._device_type = device_type
        self._mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._strides = _strides(self._shape)
        self._root_mesh: Optional[DeviceMesh] = None
        self._flatten_mapping: Dict[str, DeviceMesh] = {}
        self._dim_groups: Optional[List[Optional[ProcessGroup]]] = None
        if _init_backend:
            if not dist.is_initialized():
                dist.init_process_group()
            if max(self._ranks, default=0) >= dist.get_world_size():
                raise RuntimeError(
                    "Mesh should not be bigger than default world size "
                    f"{dist.get_world_size()}, but found {len(self._ranks)} ranks!"
                )
            self._dim_groups = [
                _new_groups(self._rows(dim), tuple(options[dim])) for dim in range(self.ndim)
            ]
        self._own_rank = _own_rank() if _rank is None else _rank

    # ---- the array ----

    @property
    def mesh(self) -> Tensor:
        """The ranks, a tensor of int32."""
        return _C.tensor(self._ranks, dtype=_C.int32, device="cpu").reshape(self._shape)

    @property
    def device_type(self) -> str:
        """Where the tensors of the mesh are."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> Optional[Tuple[str, ...]]:
        """The names of the dimensions; None without names."""
        return self._mesh_dim_names

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def shape(self) -> Ranks:
        """The number of processes along each dimension."""
        return self._shape

    def size(self, mesh_dim: Optional[int] = None) -> int:
        """The number of processes, in all or along a dimension."""
        return len(self._ranks) if mesh_dim is None else self._shape[mesh_dim]

    def _rows(self, dim: int) -> List[Ranks]:
        """The ranks along a dimension, for each place in the other dimensions."""
        moved = self.mesh.movedim(dim, -1).reshape(-1, self._shape[dim])
        return [tuple(row) for row in moved.tolist()]

    @property
    def _rank(self) -> int:
        if self._own_rank is None:  # read from a pickle, perhaps one of another process
            self._own_rank = _own_rank()
        return self._own_rank

    def get_rank(self) -> int:
        """The rank of this process in the group of all."""
        return self._rank

    def get_coordinate(self) -> Optional[Ranks]:
        """The place of this process in the array; None if it has none."""
        if self._rank not in self._ranks:
            return None
        place = self._ranks.index(self._rank)
        return tuple(place // step % size for step, size in zip(_strides(self._shape), self._shape))

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self._rank in self._ranks

    def get_local_rank(self, mesh_dim: Union[None, int, str] = None) -> int:
        """The place of this process along a dimension, which may be left out if there is one.
        RuntimeError for a process outside of the mesh."""
        dim = self._dim("get_local_rank", mesh_dim)
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError(
                f"get_local_rank: expected a process of the mesh {list(self._ranks)}, got rank "
                f"{self._rank}"
            )
        return coordinate[dim]

    def _dim(self, function: str, mesh_dim: Union[None, int, str]) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"{function}: expected mesh_dim for a mesh of {self.ndim} dimensions, got None"
                )
            return 0
        if isinstance(mesh_dim, str):
            return self._get_mesh_dim_by_name(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(
                f"{function}: expected mesh_dim in [{-self.ndim}, {self.ndim}), got {mesh_dim}"
            )
        return mesh_dim % self.ndim

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        """The number of the dimension with this name. KeyError if there is none."""
        names = self._mesh_dim_names or ()
        if mesh_dim_name not in names:
            raise KeyError(
                f"DeviceMesh: expected the name of a dimension, of {names}, got {mesh_dim_name!r}"
            )
        return names.index(mesh_dim_name)

    # ---- groups ----

    def get_group(self, mesh_dim: Union[None, int, str] = None) -> ProcessGroup:
        """The group of the processes along a dimension that includes this process. The dimension
        may be left out if there is one. RuntimeError without groups."""
        flat = self._get_root_mesh()._flatten_mapping.get(str(mesh_dim))
        if flat is not None and mesh_dim not in (self._mesh_dim_names or ()):
            return flat.get_group()
        dim = self._dim("get_group", mesh_dim)
        if self._dim_groups is None:
            self._dim_groups = self._found_groups()
        group = self._dim_groups[dim]
        if group is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return group

    def _found_groups(self) -> List[Optional[ProcessGroup]]:
        """The groups that another mesh of these ranks made: those of a mesh that was pickled."""
        found = []
        for dim in range(self.ndim):
            row = next((row for row in self._rows(dim) if self._rank in row), ())
            found.append(_known(row))
        return found

    def get_all_groups(self) -> List[ProcessGroup]:
        """The groups of all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    # ---- meshes of a mesh ----

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root_mesh or self

    def _get_root_mesh_dim(self) -> Optional[int]:
        """The dimension of the root mesh that a slice of one dimension is; None for others."""
        names, root = self._mesh_dim_names, self._get_root_mesh()
        if names is None or len(names) != 1 or names[0] not in (root._mesh_dim_names or ()):
            return None
        return root._get_mesh_dim_by_name(names[0])

    def _part(
        self,
        names: Tuple[str, ...],
        shape: Ranks,
        strides: Ranks,
        groups: Optional[List[Optional[ProcessGroup]]],
    ) -> DeviceMesh:
        """The processes of the root mesh at these strides, that include this process."""
        root = self._get_root_mesh()
        own = root._ranks.index(root._rank) if root._is_current_rank_part_of_mesh() else 0
        start = own - sum(own // step % size * step for size, step in zip(shape, strides))
        ranks = [root._ranks[start + step] for step in _steps(shape, strides)]
        part = DeviceMesh(
            self._device_type,
            _C.tensor(ranks).reshape(shape),
            mesh_dim_names=names,
            _init_backend=False,
            _rank=self._rank,
        )
        part._strides, part._root_mesh, part._dim_groups = strides, root, groups
        return part

    def __getitem__(self, mesh_dim_names: Union[str, Tuple[str, ...]]) -> DeviceMesh:
        """The mesh of the named dimensions that includes this process. KeyError for an unknown
        name, and for names in another order than the mesh has them."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        flat = self._get_root_mesh()._flatten_mapping if self._root_mesh is None else {}
        if len(names) == 1 and names[0] in flat:
            return flat[names[0]]
        known = [*self._mesh_dim_names, *flat]
        if any(name not in known for name in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {known}."
            )
        meshes = [flat[n] if n in flat else self for n in names]
        dims = [m._get_mesh_dim_by_name(n) for m, n in zip(meshes, names)]
        strides = tuple(m._strides[d] for m, d in zip(meshes, dims))
        if list(strides) != sorted(strides, reverse=True):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. "
                "Mesh dim indices should be in ascending order."
            )
        shape = tuple(m._shape[d] for m, d in zip(meshes, dims))
        groups = [m._dim_groups[d] if m._dim_groups else None for m, d in zip(meshes, dims)]
        return self._part(names, shape, strides, groups if any(groups) else None)

    def _flatten(
        self, mesh_dim_name: Optional[str] = None, backend_override: Any = None
    ) -> DeviceMesh:
        """The processes of this mesh in one dimension; its root mesh knows it by the name, by
        default the names of the dimensions with "_" between. All processes make it together."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        if self.ndim == 1 and name in self._mesh_dim_names:
            return self
        root = self._get_root_mesh()
        if name in (root._mesh_dim_names or ()):
            raise ValueError(
                f"_flatten: expected a name that the mesh has not, of {root._mesh_dim_names}, "
                f"got {name!r}"
            )
        stride = self._strides[-1]
        for size, step, outer in zip(self._shape[1:], self._strides[1:], self._strides):
            if outer != size * step:
                stride = 0  # the ranks have no one stride
        made = root._flatten_mapping.get(name)
        if made is not None:
            if made._ranks != self._ranks:
                raise ValueError(
                    f"Flatten mesh with mesh_dim_name {name} has been created before, "
                    "Please specify another valid mesh_dim_name."
                )
            return made
        options = _backend_options({0: backend_override}, 1) if backend_override else None
        flat = DeviceMesh(
            self._device_type, _C.tensor(self._ranks), mesh_dim_names=(name,), _init_backend=False
        )
        flat._root_mesh, flat._strides, flat._own_rank = root, (stride,), self._rank
        if self._dim_groups is not None:
            flat._dim_groups = [
                _new_groups(self._all_parts(), options[0] if options else (None, None))
            ]
        root._flatten_mapping[name] = flat
        return flat

    def _all_parts(self) -> List[Ranks]:
        """The ranks of this slice, and of those that the other processes have in its place."""
        root = self._get_root_mesh()
        steps = _steps(self._shape, self._strides)
        rows, seen = [], set()
        for start in range(len(root._ranks)):
            if start not in seen:
                places = [start + step for step in steps]
                seen.update(places)
                rows.append(tuple(sorted(root._ranks[place] for place in places)))
        return rows

    def _unflatten(
        self,
        dim: Union[int, str],
        mesh_sizes: Sequence[int],
        mesh_dim_names: Sequence[str],
        backend_override: Optional[Dict[Any, Any]] = None,
    ) -> DeviceMesh:
        """The mesh with several dimensions, of these sizes and names, in the place of one. All
        processes make it together. ValueError if the sizes do not fit."""
        place = self._dim("_unflatten", dim)
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        if math.prod(mesh_sizes) != self._shape[place]:
            raise ValueError(
                f"_unflatten: expected sizes whose product is {self._shape[place]}, got "
                f"{tuple(mesh_sizes)}"
            )
        names = list(self._mesh_dim_names or map(str, range(self.ndim)))
        names[place : place + 1] = mesh_dim_names
        shape = (*self._shape[:place], *mesh_sizes, *self._shape[place + 1 :])
        options = [(None, None)] * len(shape)
        if backend_override:
            inner = _backend_options(backend_override, len(mesh_sizes), mesh_dim_names)
            options[place : place + len(mesh_sizes)] = inner
        root = self._get_root_mesh()
        if self is root:
            return DeviceMesh(
                self._device_type,
                self.mesh.reshape(shape),
                mesh_dim_names=names,
                backend_override=options,
                _init_backend=self._dim_groups is not None,
                _rank=self._rank,
            )
        inner_strides = [s * self._strides[place] for s in _strides(mesh_sizes)]
        strides = (*self._strides[:place], *inner_strides, *self._strides[place + 1 :])
        groups = list(self._dim_groups or [])
        part = self._part(tuple(names), shape, strides, None)
        if groups:
            groups[place : place + 1] = [
                _new_groups(part._slices(place + i), options[place + i])
                for i in range(len(mesh_sizes))
            ]
            part._dim_groups = groups
        return part

    def _slices(self, dim: int) -> List[Ranks]:
        """The ranks along a dimension of this slice, in every place of the root mesh."""
        line = self._part(("line",), (self._shape[dim],), (self._strides[dim],), None)
        return line._all_parts()

    def _get_all_submeshes(self, mesh_dim_name: str) -> List[DeviceMesh]:
        """The meshes along a dimension, of all processes."""
        dim = self._get_mesh_dim_by_name(mesh_dim_name)
        found = []
        for row in self._rows(dim):
            mesh = DeviceMesh(
                self._device_type, row, mesh_dim_names=(mesh_dim_name,), _init_backend=False,
                _rank=self._rank,
            )  # fmt: skip
            if self._rank in row and self._dim_groups is not None:
                mesh._dim_groups = [self._dim_groups[dim]]
            found.append(mesh)
        return found

    @staticmethod
    def _concatenate(device_mesh_list: Sequence[DeviceMesh]) -> DeviceMesh:
        """The mesh of the dimensions of several slices of one mesh."""
        first = device_mesh_list[0]
        root = first._get_root_mesh()
        if any(mesh._get_root_mesh() != root for mesh in device_mesh_list):
            raise RuntimeError(
                "Cannot concatenate DeviceMeshes derived from different device meshes"
            )
        names = tuple(n for mesh in device_mesh_list for n in mesh._mesh_dim_names or ())
        shape = tuple(s for mesh in device_mesh_list for s in mesh._shape)
        strides = tuple(s for mesh in device_mesh_list for s in mesh._strides)
        groups = [g for m in device_mesh_list for g in m._dim_groups or [None] * m.ndim]
        return first._part(names, shape, strides, groups if any(groups) else None)

    @staticmethod
    def from_group(
        group: Union[ProcessGroup, Sequence[ProcessGroup]],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Optional[Sequence[str]] = None,
    ) -> DeviceMesh:
        """The mesh with a group that is there, or with one for each dimension.

        Args:
            group: the group, or a sequence of groups.
            device_type: where the tensors of the mesh are.
            mesh: the ranks; may be left out for one group.
            mesh_dim_names: a name for each dimension; may be left out for one group.

        ValueError if the ranks are not those of the group, or something is missing.
        """
        if isinstance(group, ProcessGroup):
            ranks = dist.get_process_group_ranks(group)
            given = mesh.tolist() if isinstance(mesh, Tensor) else mesh
            if given is not None and list(given) != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            groups, mesh = [group], ranks
        else:
            groups = list(group)
            if not groups:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            if mesh_dim_names is None:
                raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{made.mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        for dim, each in enumerate(groups):
            row = tuple(sorted(dist.get_process_group_ranks(each)))
            if row not in made._rows(dim):
                raise ValueError(f"Invalid mesh {made.mesh.tolist()} for ProcessGroup {row}")
            _groups[row] = each, dist.group.WORLD
        made._dim_groups = list(groups)
        return made

    # ---- an object ----

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _mesh_resources.mesh_stack.pop()

    def __repr__(self) -> str:
        shape = str(self._shape)
        if self._mesh_dim_names:
            pairs = zip(self._mesh_dim_names, self._shape)
            shape = f"({', '.join(f'{name}={size}' for name, size in pairs)})"
        text = f"DeviceMesh({shape}, '{self._device_type}', stride={self._strides}"
        if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "") == "DETAIL":
            text += f", Mesh: {self.mesh.tolist()}"
        return f"{text})"

    def _key(self) -> Tuple[Any, ...]:
        return self._ranks, self._shape, self._device_type, self._mesh_dim_names

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __deepcopy__(self, memo: Any) -> DeviceMesh:
        return self

    def __getstate__(self) -> Dict[str, Any]:
        """All but the groups and the rank, which the process that reads it has itself."""
        state = {**self.__dict__, "_dim_groups": None, "_flatten_mapping": {}, "_root_mesh": None}
        return {**state, "_own_rank": None}


def _backend_options(
    given: Dict[Any, Any], ndim: int, names: Optional[Sequence[str]] = None
) -> List[Tuple[Any, Any]]:
    """(backend, options) of each dimension, from a mapping by number or name."""
    left = dict(given)
    found: List[Tuple[Any, Any]] = []
    for dim, name in itertools.zip_longest(range(ndim), names or ()):
        if name is not None and name in left and dim in left:
            raise RuntimeError(
                f"Found redundant dim index {dim} and name {name} in backend_override"
            )
        value = left.pop(name, left.pop(dim, None))
        if value is None or isinstance(value, str):
            found.append((value, None))
        else:
            found.append(tuple(value) if isinstance(value, tuple) else (None, value))
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in "
            f"range [0, {ndim}) or one of {tuple(names or ())}"
        )
    return found


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Optional[Sequence[str]] = None,
    backend_override: Optional[Dict[Any, Any]] = None,
) -> DeviceMesh:
    """The mesh of this shape of the processes of rank 0, 1, 2, ...; all make it together.

    Args:
        device_type: where its tensors are: "cpu", ...; without an index.
        mesh_shape: the number of processes along each dimension.
        mesh_dim_names: a name for each dimension.
        backend_override: for a dimension, by number or name, the backend of its groups, or
            (backend, options).

    RuntimeError if names repeat or are too few, or the mesh has more processes than there are.
    """
    if mesh_dim_names is not None:
        names = tuple(mesh_dim_names)
        if len(set(names)) != len(names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in "
                f"mesh_dim_names {names}"
            )
        if len(names) != len(mesh_shape):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found "
                f"len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. If you maintained a "
            "'torch.device' object, it's recommended to pass in 'device.type'."
        )
    override = None
    if backend_override:
        override = _backend_options(backend_override, len(mesh_shape), mesh_dim_names)
    ranks = _C.arange(math.prod(mesh_shape), device="cpu").reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=override)


__getattr__ = _names.attributes_of(__name__)

__all__ = ["DeviceMesh", "init_device_mesh"]
