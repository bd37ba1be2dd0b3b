"""The process of each machine that starts the others: see server."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
