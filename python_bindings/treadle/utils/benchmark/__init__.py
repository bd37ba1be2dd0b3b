"""Times of small programs.

Example:

    timer = Timer("x @ x", globals={"x": treadle.randn(64, 64)})
    print(timer.blocked_autorange())
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from treadle.utils.benchmark.utils.compare import Colorize, Compare
from treadle.utils.benchmark.utils.timer import Language, Timer, timer

_FUZZERS = ("FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias")
_COUNTS = ("CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts")
__getattr__ = _names.attributes_of(
    __name__,
    {
        **dict.fromkeys(_FUZZERS, "utils.fuzzer"),
        "FuzzedSparseTensor": "utils.sparse_fuzzer",
        **dict.fromkeys(_COUNTS, "utils.valgrind_wrapper.timer_interface"),
    },
)

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
