"""Stores: a few values, by key, that all processes of a group see; by them the processes find each
other.

    store = TCPStore("localhost", 29500, world_size, is_master=rank == 0)
    store.set("key", "value")
    store.get("key")                       # b"value", waiting until some process has set it
"""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributed._stores.base import HashStore, PrefixStore, Store
from treadle.distributed._stores.file import FileStore
from treadle.distributed._stores.tcp import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
