"""The errors of treadle.compile."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable


class TorchDynamoException(RuntimeError):
    """Any of them."""


class InvalidBackend(TorchDynamoException):
    """The name of a backend that nobody registered."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"compile: expected a backend that _dynamo.list_backends(None) knows, got {name!r}"
        )


class Unsupported(TorchDynamoException):
    """With fullgraph=True: the program makes a value of Python's out of the numbers of a tensor."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "compile: expected a program that one graph can hold for fullgraph=True, got one that "
            f"calls Tensor.{name}, whose result is known only when the program runs"
        )


class BackendCompilerFailed(TorchDynamoException):
    """The function that was given as backend raised an error."""

    def __init__(self, backend_fn: Callable[..., Any], inner_exception: Exception) -> None:
        self.backend_name = getattr(backend_fn, "__name__", type(backend_fn).__name__)
        self.inner_exception = inner_exception
        kind = type(inner_exception).__name__
        super().__init__(f"backend={self.backend_name!r} raised:\n{kind}: {inner_exception}")
