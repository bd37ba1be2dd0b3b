"""Settings of the compiler behind treadle.compile: there is none, so that they are only remembered.

Example:

    treadle._dynamo.config.suppress_errors = True
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator

accumulated_cache_size_limit = 256
accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
dynamic_shapes = True
error_on_recompile = False
fail_on_recompile_limit_hit = False
force_parameter_static_shapes = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
log_level = 30
optimize_ddp = True
recompile_limit = 8
specialize_float = False
specialize_int = False
suppress_errors = False
verbose = False


@contextlib.contextmanager
def patch(changes: Any = None, **more: Any) -> Iterator[None]:
    """Settings for a block or, as a decorator, for a function: `config.patch(verbose=True)`."""
    wanted = {**(changes or {}), **more}
    unknown = [name for name in wanted if name not in globals()]
    if unknown:
        raise AttributeError(f"config.patch: expected settings of this module, got {unknown[0]!r}")
    before = {name: globals()[name] for name in wanted}
    globals().update(wanted)
    try:
        yield
    finally:
        globals().update(before)
