"""Classes of a program whose every method leaves a trace: reading a file must run none of them."""

# SPDX-License-Identifier: Apache-2.0

import enum

from treadle import nn

ran: list[str] = []


def run(*args, **kwargs):
    """The function that an attacker wants to be called."""
    ran.append("run")


class Plain:
    """A class that checkpoints may fill."""

    def __init__(self, *args):
        ran.append("__init__")

    def __getattr__(self, name):
        if not name.startswith("__"):
            ran.append("__getattr__")
        raise AttributeError(name)

    def __setattr__(self, name, value):
        ran.append("__setattr__")

    def __eq__(self, other):
        ran.append("__eq__")
        return True

    def __hash__(self):
        ran.append("__hash__")
        return 0

    def __call__(self, *args):
        ran.append("__call__")

    def __repr__(self):
        ran.append("__repr__")
        return "Plain"


class Watchful:
    """A class that notices every look at an instance."""

    def __getattribute__(self, name):
        ran.append("__getattribute__")
        return object.__getattribute__(self, name)

    @property
    def __class__(self):
        ran.append("__class__")
        return dict

    @property
    def value(self):
        ran.append("value")

    @value.setter
    def value(self, value):
        ran.append("value.setter")

    def __len__(self):
        ran.append("__len__")
        return 0

    def __iter__(self):
        ran.append("__iter__")
        return iter(())


class Mapping(dict):
    """The same, over a dictionary."""

    def __init__(self, *args):
        ran.append("__init__")

    def __setitem__(self, key, value):
        ran.append("__setitem__")

    def update(self, *args):
        ran.append("update")


class LoudMapping(Mapping):
    """One that also notices whether it is looked at."""

    def __len__(self):
        ran.append("__len__")
        return 0

    def items(self):
        ran.append("items")
        return ()

    def setdefault(self, *args):
        ran.append("setdefault")


class Row(list):
    """The same, over a list."""

    def append(self, item):
        ran.append("append")

    def extend(self, items):
        ran.append("extend")


class LoudRow(Row):
    """One that also notices whether it is looked at."""

    def __iter__(self):
        ran.append("__iter__")
        return iter((1,))

    def __len__(self):
        ran.append("__len__")
        return 1


class Pair(tuple):
    """The same, over a tuple."""

    def __iter__(self):
        ran.append("__iter__")
        return iter((1,))

    def __hash__(self):
        ran.append("__hash__")
        return 0


Alias = Plain


class Layer(nn.Linear):
    """A layer of the program."""

    def __init__(self, *args):
        ran.append("__init__")
        super().__init__(2, 2)


class Dying:
    """A class that does something when it dies."""

    def __del__(self):
        ran.append("__del__")


class Stateful:
    """A class that fills itself."""

    def __setstate__(self, state):
        ran.append("__setstate__")


class StatefulLayer(nn.Linear):
    """A layer that fills itself."""

    def __setstate__(self, state):
        ran.append("__setstate__")


class Run:
    """A class that calls a function when it is pickled or read."""

    def __reduce__(self):
        return run, ()


class Colour(enum.Enum):
    """A value of a fixed set."""

    RED = 1

    @classmethod
    def _missing_(cls, value):
        ran.append("_missing_")
        return cls.RED
