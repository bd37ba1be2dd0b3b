"""Loggers, whose level LOGLEVEL sets."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import logging
import os
from typing import Optional


def get_logger(name: Optional[str] = None) -> logging.Logger:
    """The logger of a module, by default that of this package. LOGLEVEL of the environment is its
    level, WARNING without it."""
    made = logging.getLogger(name or __name__.rpartition(".")[0])
    level = os.environ.get("LOGLEVEL", "WARNING").upper()
    made.setLevel(level if level.isdigit() is False else int(level))
    return made
