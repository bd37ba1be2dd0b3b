"""The errors of treadle.compile."""


class TorchDynamoException(RuntimeError):
    """Any of them."""


class InvalidBackend(TorchDynamoException):
    """The name of a backend that nobody registered."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"compile: expected a backend that _dynamo.list_backends(None) knows, got {name!r}"
        )
