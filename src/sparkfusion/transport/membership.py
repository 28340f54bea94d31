"""Which workers a session uses: a list, or a function that is called again for each query."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from sparkfusion.config.given_settings import TOKEN_VARIABLE
from sparkfusion.errors import UserError
from sparkfusion.ids import TaskKey
from sparkfusion.transport.base import Access

_OPTIONS = ("token", "ca", "cert", "key")

Resolver = Callable[[], Sequence[str]]
"""Gives the addresses of workers; asked again for each query, from the thread that starts it."""


@dataclass(frozen=True)
class RoutedTask:
    """What a routing function knows about a task: its key, and how many bytes of its inputs each worker has."""

    key: TaskKey
    bytes_at: Mapping[str, int]


Routing = Callable[[RoutedTask, Sequence[str]], str | None]
"""Chooses among the addresses of workers that have a free slot; None leaves the choice to us. Must not wait."""


@dataclass(frozen=True)
class Cluster:
    """Workers to connect to: `connect(Cluster(["flight://a:7070", "flight://b:7070"], token=…))`.

    Attributes:
        workers: addresses, or a function that gives them, asked again for each query.
        token: what the workers were started with; SPARKFUSION_TOKEN if it is not given.
        ca, certificate, key: PEM files: who signed the workers' certificates; what we show to them.
        routing: where a task runs.
        extensions: settings that are sent with every task to the extensions of workers.
    """

    workers: Sequence[str] | Resolver
    token: str = field(default="", repr=False)
    ca: str = ""
    certificate: str = ""
    key: str = ""
    routing: Routing | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.workers):
            self.addresses()

    def addresses(self) -> tuple[str, ...]:
        """The addresses of the workers now; each address once, in order."""
        found = self.workers() if callable(self.workers) else self.workers
        if isinstance(found, str):
            raise UserError(f"workers are a list of addresses, not the text {found.partition('?')[0]!r}")
        for address in found:
            _check_plain(address)
        return tuple(dict.fromkeys(address.rstrip("/") for address in found))

    def access(self) -> Access:
        token = self.token or os.environ.get(TOKEN_VARIABLE, "").strip()
        return Access(token, self.ca, self.certificate, self.key)


def _check_plain(address: str) -> None:
    """Refuse options in an address, without showing them: errors and plans show addresses."""
    place, mark, _ = address.partition("?")
    if mark:
        raise UserError(
            f"the address {place!r} of a worker has options behind '?'",
            hint="give them to the cluster: Cluster([…], token=…, ca=…, certificate=…, key=…)",
        )


def cluster_of(target: str) -> Cluster:
    """The cluster of a text such as `flight://host:port,host:port?token=…`.

    >>> cluster_of("flight://a:1,b:2?token=t").addresses()
    ('flight://a:1', 'flight://b:2')
    """
    scheme, _, rest = target.partition("://")
    places, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown:
        raise UserError(f"{scheme}:// has no option {unknown[0]!r}", hint=f"it has {', '.join(_OPTIONS)}")
    return Cluster(
        workers=[f"{scheme}://{place.strip()}" for place in places.rstrip("/").split(",") if place.strip()],
        token=options.get("token", ""),
        ca=options.get("ca", ""),
        certificate=options.get("cert", ""),
        key=options.get("key", ""),
    )
