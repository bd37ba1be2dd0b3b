"""How long a group waits for its processes."""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributed.process_group import DEFAULT_TIMEOUT

default_pg_timeout = DEFAULT_TIMEOUT

# The timeout of the transport for devices of CUDA, which is not here.
default_pg_nccl_timeout = None

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
