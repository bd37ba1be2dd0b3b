"""Addresses and settings as programs write them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Dict, Optional, Tuple


def parse_rendezvous_endpoint(endpoint: Optional[str], default_port: int) -> Tuple[str, int]:
    """The host and the port of `host:port`, `host`, `[::1]:port`. ValueError for other text."""
    text = (endpoint or "").strip()
    if not text:
        return "localhost", default_port
    found = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?|([^:\s]+)(?::(-?\d+))?", text)
    port = found and (found[2] or found[4])
    if found is None or not -1 <= int(port or 0) < 1 << 16:
        raise ValueError(f"rendezvous: expected an endpoint as host:port, got {endpoint!r}")
    return found[1] or found[3], default_port if port is None else int(port)


def _parse_rendezvous_config(config_str: str) -> Dict[str, str]:
    """The settings of `key1=value1,key2=value2`. ValueError for other text."""
    made = {}
    for pair in filter(None, (part.strip() for part in config_str.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not key or not equals or not value:
            raise ValueError(f"rendezvous: expected settings as key=value,..., got {config_str!r}")
        made[key] = value
    return made


def _addresses(host: str) -> set:
    try:
        return {each[4][0] for each in socket.getaddrinfo(host, None)}
    except OSError:
        return set()


def _matches_machine_hostname(host: str) -> bool:
    """Whether a host is this machine."""
    if host in ("localhost", socket.gethostname(), socket.getfqdn()):
        return True
    mine = _addresses(socket.gethostname()) | _addresses(socket.getfqdn())
    found = _addresses(host)
    if found & mine:
        return True
    for address in found:
        if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            return True
        # An address is this machine's if a socket can be bound to it.
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((address, 0))
                return True
            except OSError:
                pass
    return False


__all__ = ["parse_rendezvous_endpoint"]
