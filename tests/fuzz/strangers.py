"""Objects that belong in no argument: they raise, lie about their length, or are of another
library.

Each is Python source, so that the script of a finding can hold it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

# name -> (definitions, expression)
SOURCES: dict[str, tuple[str, str]] = {
    "raises": (
        """class Raises:
    def _refuse(self, *_):
        raise ValueError("stranger: refuses")
    __index__ = __int__ = __float__ = __complex__ = __len__ = __getitem__ = __iter__ = _refuse
    __bool__ = __array__ = _refuse
""",
        "Raises()",
    ),
    "raises for its attributes": (
        """class RaisesForAttributes:
    def __getattribute__(self, name):
        raise ValueError("stranger: refuses")
""",
        "RaisesForAttributes()",
    ),
    "endless": (
        """class Endless:
    def __len__(self):
        return 2**62
    def __getitem__(self, i):
        return self
""",
        "Endless()",
    ),
    "negative length": (
        """class NegativeLength:
    def __len__(self):
        return -1
    def __getitem__(self, i):
        return 1
""",
        "NegativeLength()",
    ),
    "huge index": (
        """class HugeIndex:
    def __index__(self):
        return 2**200
""",
        "HugeIndex()",
    ),
    "index that is text": (
        """class TextIndex:
    def __index__(self):
        return "1"
    def __float__(self):
        return "1"
""",
        "TextIndex()",
    ),
    "an index": (
        """class AnIndex:
    def __index__(self):
        return 1
""",
        "AnIndex()",
    ),
    "list that shrinks": (
        """class Shrinking(list):
    def __len__(self):
        return 5
""",
        "Shrinking([1, 2])",
    ),
    "list cleared by its own item": (
        """class Clearing:
    def __init__(self, owner):
        self.owner = owner
    def __index__(self):
        self.owner.clear()
        return 1
    __float__ = __index__
def clearing():
    owner = []
    owner.extend([Clearing(owner), Clearing(owner), 3])
    return owner
""",
        "clearing()",
    ),
    "nested lists": (
        """def nested():
    value = 1
    for _ in range(500):
        value = [value]
    return value
""",
        "nested()",
    ),
    "cycle": (
        """def cycle():
    value = []
    value.append(value)
    return value
""",
        "cycle()",
    ),
    "numpy array": ("import numpy as np\n", "np.ones((2, 3), dtype=np.float32)"),
    "numpy integers": ("import numpy as np\n", "np.array([1, 2, 0])"),
    "numpy objects": ("import numpy as np\n", "np.array([None, 'a'], dtype=object)"),
    "numpy texts": ("import numpy as np\n", "np.array(['a', 'bc'])"),
    "numpy int64": ("import numpy as np\n", "np.int64(1)"),
    "numpy float32": ("import numpy as np\n", "np.float32(1.5)"),
    "numpy bool": ("import numpy as np\n", "np.bool_(True)"),
    "numpy complex": ("import numpy as np\n", "np.complex64(1 + 2j)"),
    "numpy dtype": ("import numpy as np\n", "np.dtype('float32')"),
    "object": ("", "object()"),
    "type": ("", "type"),
    "int type": ("", "int"),
    "dict": ("", "{1: 2}"),
    "set": ("", "{1, 2}"),
    "range": ("", "range(3)"),
    "generator": ("", "(i for i in range(3))"),
    "bytes": ("", "b'abc'"),
    "memoryview": ("", "memoryview(b'abc')"),
    "function": ("", "lambda *a: a"),
    "ellipsis": ("", "..."),
    "slice": ("", "slice(None, 2, None)"),
    "module": ("", "treadle"),
    "Tensor type": ("", "treadle.Tensor"),
    "dtype": ("", "treadle.int64"),
    "device": ("", "treadle.device('meta')"),
    "generator of numbers": ("", "treadle.Generator()"),
    "size": ("", "treadle.Size([2, 3])"),
    "storage": ("", "treadle.ones(3).untyped_storage()"),
    "tensors by name": ("", "{'a': treadle.ones(2)}"),
    "0-dim integer tensor": ("", "treadle.tensor(1)"),
    "0-dim tensor": ("", "treadle.tensor(1.5)"),
    "tensor of one": ("", "treadle.ones(1)"),
    "list of 0-dim tensors": ("", "[treadle.tensor(1), treadle.tensor(2)]"),
    "lone surrogate": ("", "'\\udc80'"),
    "zero character": ("", "'a\\0b'"),
}
NAMES = tuple(SOURCES)
_MAKERS: dict[str, Any] = {}


def make(name: str) -> Any:
    """A new object of the name."""
    maker = _MAKERS.get(name)
    if maker is None:
        definitions, expression = SOURCES[name]
        scope: dict[str, Any] = {}
        exec("import treadle\n" + definitions, scope)
        maker = _MAKERS[name] = eval(f"lambda: {expression}", scope)
    return maker()
