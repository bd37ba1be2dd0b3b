"""Models of several processes that are averaged now and then, rather than their gradients."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
