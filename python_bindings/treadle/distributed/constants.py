"""How long a group waits for its processes."""

# SPDX-License-Identifier: Apache-2.0

from datetime import timedelta

from treadle.distributed.process_group import DEFAULT_TIMEOUT

default_pg_timeout = DEFAULT_TIMEOUT

# That of a group which has the transport "nccl" only.
default_pg_nccl_timeout = timedelta(minutes=10)

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
