"""Send what this process writes to its standard output and error into a file, also from C++."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import sys
from typing import Iterator


@contextlib.contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """While the context lasts, send "stdout" or "stderr" of this process to a file."""
    if std not in ("stdout", "stderr"):
        raise ValueError(f"redirect: expected stdout or stderr, got {std!r}")
    stream = getattr(sys, std)
    number = {"stdout": 1, "stderr": 2}[std]
    stream.flush()
    before = os.dup(number)
    try:
        with open(to_file, "ab", buffering=0) as file:
            os.dup2(file.fileno(), number)
        yield
    finally:
        stream.flush()
        os.dup2(before, number)
        os.close(before)


def redirect_stdout(to_file: str) -> contextlib.AbstractContextManager:
    """redirect() of "stdout"."""
    return redirect("stdout", to_file)


def redirect_stderr(to_file: str) -> contextlib.AbstractContextManager:
    """redirect() of "stderr"."""
    return redirect("stderr", to_file)


__all__ = ["redirect", "redirect_stderr", "redirect_stdout"]
