"""Options of a command whose defaults come from the environment: PET_NNODES is that of --nnodes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from argparse import Action, ArgumentParser, Namespace
from typing import Any


class env(Action):  # noqa: N801
    """Stores the value of an option; without the option, that of `PET_<DEST>`."""

    def __init__(
        self, dest: str, default: Any = None, required: bool = False, **kwargs: Any
    ) -> None:
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(
            dest=dest, default=default, required=required and default is None, **kwargs
        )

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: Any = None
    ) -> None:
        setattr(namespace, self.dest, values)


class check_env(Action):  # noqa: N801
    """Stores True for an option without a value; without the option, whether `PET_<DEST>` is 1."""

    def __init__(self, dest: str, default: bool = False, **kwargs: Any) -> None:
        variable = os.environ.get(f"PET_{dest.upper()}")
        if variable is not None:
            default = variable.strip().lower() not in ("", "0", "false", "no")
        super().__init__(dest=dest, nargs=0, const=True, default=default, **kwargs)

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: Any = None
    ) -> None:
        setattr(namespace, self.dest, self.const)


__all__ = ["check_env", "env"]
