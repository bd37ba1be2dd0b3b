"""RoutedDecoder: what is in files, by the ends of their names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Tuple

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.decoder import Decoder, Handler, extension_extract_fn


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """(path, value) for each pair of a path and its bytes or open file: see
    `datapipes.utils.decoder`. Without handlers bytes stay bytes."""

    def __init__(
        self,
        datapipe: Iterable[Tuple[str, Any]],
        *handlers: Handler,
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        self.datapipe = datapipe
        self.decoder = Decoder(*handlers, key_fn=key_fn)

    def add_handler(self, *handler: Handler) -> None:
        """Add handlers behind those that are there."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Tuple[str, Any]]:
        for data in self.datapipe:
            yield from self.decoder(data).items()

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


__all__ = ["RoutedDecoderIterDataPipe"]
