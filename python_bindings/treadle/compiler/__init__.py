"""Functions of programs for the compiler behind treadle.compile. There is none: programs run as
written, or by what a function given as backend makes of their graph.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import List

from treadle import _names
from treadle._as_written.compiler import (  # noqa: F401
    cudagraph_mark_step_begin,
    cudagraph_mark_warmup_incomplete,
    is_dynamo_compiling,
    is_exporting,
    keep_portable_guards_unsafe,
    keep_tensor_guards_unsafe,
    load_cache_artifacts,
    nested_compile_region,
    nonstrict_trace,
    save_cache_artifacts,
    set_enable_guard_collectives,
    set_stance,
    skip_all_guards_unsafe,
    skip_guard_on_all_nn_modules_unsafe,
    skip_guard_on_globals_unsafe,
    skip_guard_on_inbuilt_nn_modules_unsafe,
    substitute_in_graph,
    wrap_numpy,
)
from treadle._as_written.dynamo import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
)
from treadle._dynamo import list_backends, reset  # noqa: F401
from treadle.compiler._compile import compile as compile
from treadle.compiler._compile import get_default_backend as get_default_backend
from treadle.compiler._compile import set_default_backend as set_default_backend

__getattr__ = _names.attributes_of(__name__)


def __dir__() -> List[str]:
    return sorted(globals())
