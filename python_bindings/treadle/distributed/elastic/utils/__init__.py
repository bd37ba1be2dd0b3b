"""Small functions for agents and workers."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.elastic.utils.api import (
    get_env_variable_or_raise,
    get_socket_with_port,
    macros,
)

__getattr__ = _names.attributes_of(__name__)

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]
