"""The process of each machine that starts the others."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.elastic.agent.server.api import (
    ElasticAgent,
    RunResult,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)

__getattr__ = _names.attributes_of(__name__)

__all__ = ["ElasticAgent", "RunResult", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]
