"""treadle.utils.data.collate, where programs look for it that use PyTorch's inside."""

# SPDX-License-Identifier: Apache-2.0

import re

from treadle.utils.data.collate import (
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_numpy_scalar_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

# The dtypes of arrays, as text, whose elements are no numbers.
np_str_obj_array_pattern = re.compile(r"[SaUO]")

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
]
