"""Variables of the environment, free ports, and what stands for a worker's number in arguments."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import socket
from typing import Any, List


def get_env_variable_or_raise(env_name: str) -> str:
    """The value of a variable. ValueError if it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"expected the environment variable {env_name}, got none")
    return value


def get_socket_with_port() -> socket.socket:
    """A socket that listens at a free port of localhost."""
    family = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)[0][0]
    made = socket.socket(family, socket.SOCK_STREAM)
    made.bind(("localhost", 0))
    made.listen(0)
    return made


class macros:  # noqa: N801
    """`${local_rank}` in an argument of a worker stands for its number."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: List[Any], local_rank: str) -> List[Any]:
        """The arguments of one worker."""
        return [
            arg.replace(macros.local_rank, local_rank) if isinstance(arg, str) else arg
            for arg in args
        ]
