"""How a module's conversions (`to`, `half`, `cuda`, ...) and `load_state_dict` treat its
parameters.

    treadle.__future__.set_overwrite_module_params_on_conversion(True)
    layer.half()                    # layer.weight is a new Parameter; the old one is unchanged

By default a parameter stays the same object, and its memory is replaced.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

_overwrite = [False]
_swap = [False]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions put new parameters in the place of a module's own."""
    _overwrite[0] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions put new parameters in the place of a module's own; False at first."""
    return _overwrite[0]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether parameters stay the same objects whatever they are converted to or loaded from, also
    where new ones are put in their place otherwise; it wins over the setting of overwriting."""
    _swap[0] = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters stay the same objects in any case; False at first."""
    return _swap[0]


def overwrites() -> bool:
    """Whether a conversion makes new parameters, by both settings."""
    return _overwrite[0] and not _swap[0]
