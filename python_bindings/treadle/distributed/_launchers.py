"""The environment that launchers give to each process: Slurm, Open MPI, MPICH.

A process that has RANK was started by a launcher of this kind (treadle.distributed.run), and the
others are not asked.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import zlib
from typing import Mapping, NamedTuple, Optional, Sequence

DEFAULT_PORT = 29500


class Place(NamedTuple):
    """The place of a process among the others. None for what the launcher does not say."""

    rank: int
    world_size: Optional[int]
    local_rank: Optional[int]
    host: Optional[str]  # that of rank 0
    port: int


class _Launcher(NamedTuple):
    """The variables of a launcher, those that are asked first before others."""

    rank: Sequence[str]
    world_size: Sequence[str]
    local_rank: Sequence[str]
    local_world_size: Sequence[str]
    nodes: Sequence[str]
    job: Sequence[str]


_LAUNCHERS = (
    _Launcher(
        ["OMPI_COMM_WORLD_RANK"],
        ["OMPI_COMM_WORLD_SIZE"],
        ["OMPI_COMM_WORLD_LOCAL_RANK"],
        ["OMPI_COMM_WORLD_LOCAL_SIZE"],
        [],
        ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    ),
    _Launcher(
        ["PMI_RANK"],
        ["PMI_SIZE"],
        ["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        ["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
        [],
        ["HYDI_CONTROL_FD", "PMI_JOBID"],
    ),
    _Launcher(
        ["SLURM_PROCID"],
        ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        ["SLURM_LOCALID"],
        [],
        ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"],
        ["SLURM_JOB_ID", "SLURM_JOBID"],
    ),
)


def first_host(nodes: str) -> str:
    """The first host of a list as Slurm writes it: node01 of "node[01-03,7],gpu2"."""
    inside = 0
    end = len(nodes)
    for at, character in enumerate(nodes):
        inside += (character == "[") - (character == "]")
        if character == "," and not inside:
            end = at
            break
    return re.sub(r"\[([^\]\-,]*)[^\]]*\]", r"\1", nodes[:end])


def place(environment: Mapping[str, str] = os.environ) -> Optional[Place]:
    """The place that a launcher of another kind gave to this process; None if there is none."""

    def first(names: Sequence[str]) -> Optional[str]:
        return next((environment[name] for name in names if environment.get(name)), None)

    def number(names: Sequence[str]) -> Optional[int]:
        found = first(names)
        return None if found is None else int(found)

    for launcher in _LAUNCHERS:
        rank = number(launcher.rank)
        if rank is None:
            continue
        nodes, world_size = first(launcher.nodes), number(launcher.world_size)
        host = None if nodes is None else first_host(nodes)
        if host is None and world_size in (1, number(launcher.local_world_size)):
            host = "127.0.0.1"
        job = first(launcher.job)
        # Jobs on the same machine do not meet at one port.
        port = DEFAULT_PORT if job is None else 15000 + zlib.crc32(job.encode()) % 15000
        return Place(rank, world_size, number(launcher.local_rank), host, port)
    return None
