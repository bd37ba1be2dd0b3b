"""The older name of treadle.hub."""

# SPDX-License-Identifier: Apache-2.0

from typing import Any

from treadle import hub
from treadle.hub import load_state_dict_from_url

load_url = load_state_dict_from_url


def __getattr__(name: str) -> Any:
    return getattr(hub, name)


__all__ = ["load_state_dict_from_url", "load_url"]
