"""A program's settings for PyTorch's compiler. There is none here: settings are kept and change
nothing."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Set

accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_key_tag = ""
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
compile_on_one_rank = False
dynamic_shapes = True
enable_cpp_symbolic_shape_guards = False
fail_on_recompile_limit_hit = False
force_disable_caches = False
job_id: Optional[str] = None
log_file_name: Optional[str] = None
recompile_limit = 8
reorderable_logging_functions: Set[Any] = set()
skip_tensor_guards_with_matching_dict_tags = True
verbose = False
wrap_top_frame = False
