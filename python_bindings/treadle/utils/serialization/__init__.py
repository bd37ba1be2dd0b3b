"""Settings of saving and loading: see config."""

# SPDX-License-Identifier: Apache-2.0

from treadle.utils.serialization import config

__all__ = ["config"]
