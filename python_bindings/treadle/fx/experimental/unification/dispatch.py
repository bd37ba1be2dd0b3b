"""dispatch with a namespace of its own, for the functions of unification."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Dict

from treadle.fx.experimental.unification.multipledispatch.core import dispatch as _dispatch

namespace: Dict[str, Any] = {}

dispatch = functools.partial(_dispatch, namespace=namespace)
