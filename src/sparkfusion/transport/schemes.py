"""Transports by the scheme of an address: ours, and those that installed packages register.

A package brings its own with an entry point in the group `sparkfusion.transports`: the name is the scheme, the object a
class without arguments that makes a `Transport`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from sparkfusion.errors import UserError, first_words
from sparkfusion.transport.base import Access, Transport, WorkerChannel

TRANSPORTS = "sparkfusion.transports"
_OURS = {
    "flight": "sparkfusion.transport.flight:Flight",
    "flight+tls": "sparkfusion.transport.flight:Flight",
}


def scheme_of(address: str) -> str:
    return address.partition("://")[0] if "://" in address else ""


def is_known(scheme: str) -> bool:
    return scheme in _OURS or bool(entry_points(group=TRANSPORTS, name=scheme))


def known_schemes() -> list[str]:
    return sorted({*_OURS, *(each.name for each in entry_points(group=TRANSPORTS))})


def transport_of(address: str) -> Transport:
    """The transport of an address. The error for an unknown scheme names those that are known."""
    scheme = scheme_of(address)
    if scheme in _OURS:
        module, _, name = _OURS[scheme].partition(":")
        try:
            made: Transport = getattr(import_module(module), name)()
        except ImportError as missing:
            raise UserError(
                f"{scheme}:// needs {missing.name or 'a package'}, which is not installed",
                hint="pip install pyarrow; some builds of pyarrow do not contain Arrow Flight",
            ) from missing
        return made
    found = list(entry_points(group=TRANSPORTS, name=scheme))
    if not found:
        raise UserError(f"there is no transport for {address!r}", hint=f"known are {', '.join(known_schemes())}")
    try:
        registered: Transport = found[0].load()()
    except Exception as error:
        raise UserError(
            f"the transport of {scheme}:// ({found[0].value}) cannot be loaded: {first_words(error)}"
        ) from error
    return registered


def connect(address: str, access: Access) -> WorkerChannel:
    return transport_of(address).connect(address, access)
