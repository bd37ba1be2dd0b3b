"""The operators that a program runs, how long they take, and what memory they use.

Example:

    with treadle.profiler.profile(record_shapes=True, profile_memory=True) as prof:
        for batch in batches:
            train(batch)
            prof.step()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    print(prof.report())  # rates beside the machine's peak, and what would be faster
    prof.export_chrome_trace("trace.json")
"""

# SPDX-License-Identifier: Apache-2.0

from treadle.autograd.profiler import kineto_available, record_function
from treadle.autograd.profiler_util import DeviceType

from ._communication import Communication
from ._ranks import merge_chrome_traces
from ._roofline import Roofline, roofline
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "Communication", "DeviceType", "ProfilerAction", "ProfilerActivity", "Roofline",
    "kineto_available", "merge_chrome_traces", "profile", "record_function", "roofline",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
