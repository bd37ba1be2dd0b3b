"""Workers of one machine: see api."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.elastic.multiprocessing.api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    PContext,
    RunProcsResult,
    SignalException,
    Std,
    start_processes,
    to_map,
)
from treadle.distributed.elastic.multiprocessing.contexts import (
    MultiprocessContext,
    SubprocessContext,
)
from treadle.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
    record,
)

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "ChildFailedError",
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "ProcessFailure",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "record",
    "start_processes",
    "to_map",
]
