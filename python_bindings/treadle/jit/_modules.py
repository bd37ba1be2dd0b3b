"""The classes of TorchScript: modules that programs derive from, and types that they ask about."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, TypeVar

from treadle import nn

F = TypeVar("F", bound=Callable[..., Any])


class Error(RuntimeError):
    """An error of a compiled program: there is none."""


class ScriptModule(nn.Module):
    """A module, from which programs derive theirs to have them compiled; it runs as written."""

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """As jit.save()."""
        from treadle.jit._files import save

        save(self, f, _extra_files)


class RecursiveScriptModule(ScriptModule):
    """The result of script() for a module elsewhere. No module here is one."""


class ScriptFunction:
    """The result of script() for a function elsewhere. No function here is one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("ScriptFunction: expected script() to be called, got the class")


class CompilationUnit:
    """Source text to compile: RuntimeError, as there is no compiler."""

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        raise RuntimeError("CompilationUnit: expected a function; there is no compiler for text")


def script_method(fn: F) -> F:
    """A method of a ScriptModule, as it is."""
    return fn
