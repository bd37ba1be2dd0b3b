"""The type of `torch.__version__`: a string that compares as a version, not letter by letter.

TorchVersion("2.10.0") > "2.9"        # and > (2, 9)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import operator
import re
from typing import Any, Callable, Optional, Tuple

# Numbers; the mark of a version before the release; what a build adds after '+'.
_FORM = re.compile(
    r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|alpha|b|beta|c|rc|dev)[._-]?(\d*)\w*)?"
    r"(?:\.?post\d+)?(?:\+(.*))?\Z"
)
_BEFORE_RELEASE = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "c": 3, "rc": 3}
_RELEASE = 4

_Key = Tuple[Tuple[int, ...], int, int, str]


@functools.lru_cache(maxsize=256)
def _key(text: str) -> Optional[_Key]:
    """The key that versions are compared by, in order; None for text that is no version."""
    form = _FORM.match(text.strip().lower())
    if form is None:
        return None
    numbers = [int(part) for part in form[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    stage = _BEFORE_RELEASE.get(form[2] or "", _RELEASE)
    return tuple(numbers), stage, int(form[3] or 0), form[4] or ""


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def method(self: str, other: Any) -> Any:
        if isinstance(other, (tuple, list)):
            other = ".".join(map(str, other))
        if not isinstance(other, str):
            return NotImplemented
        mine, its = _key(str(self)), _key(str(other))
        return compare(str(self), str(other)) if mine is None or its is None else compare(mine, its)

    return method


class TorchVersion(str):
    """A version: compares with versions, with strings and with tuples such as (1, 13)."""

    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __hash__ = str.__hash__


__all__ = ["TorchVersion"]
