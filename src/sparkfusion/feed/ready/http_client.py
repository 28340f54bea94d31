"""Fetch over HTTP: with timeouts, retries with growing pauses, and no secrets in errors or sent to another host.

All threads of a process share open connections: a page takes a half to an eighth of the time that it takes with a
connection of its own.
"""

from __future__ import annotations

import email.utils
import errno
import itertools
import logging
import math
import os
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError

from sparkfusion.errors import QueryCancelledError, SparkfusionError, UnavailableError, UserError
from sparkfusion.urls import show_url, without_secrets

Wait = Callable[[float], bool]
"""Sleeps this many seconds; True if the answer is not needed any more."""

_BUSY = frozenset({408, 425, 429})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_TURN_SECONDS = 0.2
_QUICK_TRIES, _QUICK_PAUSE = 3, 0.25
_MOST_REDIRECTS = 10
_KEPT_CONNECTIONS = 64  # for each host
_NOBODY_THERE = frozenset({errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH})
_log = logging.getLogger("sparkfusion")


@dataclass(frozen=True)
class Page:
    """A page as it was received. `links` are the values of its `Link` headers."""

    body: bytes
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class HttpClient:
    """How to fetch. It is sent to workers, with its headers. Its repr does not show them.

    Attributes:
        timeout: seconds without an answer. `retries`: attempts after the first.
        longest_wait: if a server asks for a longer pause (Retry-After), in seconds, the fetch fails.
    """

    timeout: float = 30.0
    retries: int = 5
    longest_wait: float = 300.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def fetch(self, url: str, headers: Mapping[str, str], wait: Wait) -> Page:
        """Get a URL. It is retried after an answer 429 or 5xx, or a lost connection. Raises an `UnavailableError` after
        the last retry.

        A host that is not there, or refuses connections, is tried a few times within a second.
        """
        tries = self.retries + 1
        for attempt in itertools.count(1):
            try:
                answer = self._ask(url, headers)
            except ValueError:  # some of these messages quote the URL or the header
                raise UserError(
                    f"cannot fetch {show_url(url)}: the URL, one that it redirects to, or a header is not valid"
                ) from None
            except HTTPError as error:
                reason = _reason(error)
                pause, last = _pause(attempt), _connection_error(reason, url)
                if _is_nobody_there(reason):
                    tries = min(tries, _QUICK_TRIES)
                    pause = math.ldexp(_QUICK_PAUSE, attempt - 1)
            else:
                if 200 <= answer.status < 300:
                    return Page(answer.data, tuple(answer.headers.getlist("Link")))
                pause, last = self._pause_after(answer, url, attempt), _status_error(answer, url)
            if attempt >= tries:
                raise last
            _log.warning("%s; asking again in %.1f s (%d of %d)", last.message, pause, attempt, tries - 1)
            if wait(pause):
                break
        raise QueryCancelledError("the query needs no more pages")

    def _ask(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Send one request and follow redirects. Headers may hold secret keys, so they are not sent to another host."""
        if urlsplit(url).scheme not in ("http", "https"):
            raise UserError(f"{show_url(url)} is not an http URL")
        own = {**self.headers, **headers}
        rules = urllib3.Retry(
            total=None,
            connect=False,
            read=False,
            other=0,
            redirect=_MOST_REDIRECTS,
            raise_on_redirect=False,
            respect_retry_after_header=False,
            remove_headers_on_redirect=[*urllib3.Retry.DEFAULT_REMOVE_HEADERS_ON_REDIRECT, *own],
        )
        sent = {"Accept": "application/json", **own}
        return _connections(url).request("GET", url, headers=sent, timeout=self.timeout, retries=rules)

    def _pause_after(self, answer: urllib3.BaseHTTPResponse, url: str, attempt: int) -> float:
        if answer.status not in _BUSY and answer.status < 500:
            raise _status_error(answer, url)
        asked = _retry_after(answer.headers.get("Retry-After"))
        if asked is not None and asked > self.longest_wait:
            raise UnavailableError(
                f"{show_url(url)} answered {answer.status} and asks to wait {asked:.0f} seconds",
                hint=f"run the query later, or give HttpPages a longest_wait of more than {self.longest_wait:.0f}",
            )
        return asked if asked is not None else _pause(attempt)


def sleep(seconds: float) -> bool:
    """Wait on a worker, in short steps, so that an interrupt is noticed."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _TURN_SECONDS))
    return False


def origin(url: str) -> tuple[str, str]:
    """The scheme, host and port of a URL.

    >>> origin("https://u:p@api.example:443/x?y=1") == origin("https://API.example/")
    True
    """
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return parts.scheme, f"{(parts.hostname or '').lower()}:{port}"


def _connections(url: str) -> urllib3.PoolManager:
    """The open connections for a URL, straight to its host or to the proxy of the environment."""
    parts = urlsplit(url)
    proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
    return _pool(os.getpid(), proxy)


@cache
def _pool(process: int, proxy: str | None) -> urllib3.PoolManager:
    """The connections of a process and proxy. A forked child must not use connections of its parent."""
    trust = ssl.create_default_context()
    if proxy is None:
        return urllib3.PoolManager(maxsize=_KEPT_CONNECTIONS, ssl_context=trust)
    address = proxy if "://" in proxy else f"http://{proxy}"
    login = urllib3.util.parse_url(address).auth
    headers = urllib3.make_headers(proxy_basic_auth=unquote(login)) if login else None
    return urllib3.ProxyManager(address, maxsize=_KEPT_CONNECTIONS, ssl_context=trust, proxy_headers=headers)


def _pause(attempt: int) -> float:
    return min(_LONGEST_PAUSE, math.ldexp(_FIRST_PAUSE, attempt - 1)) * random.uniform(0.5, 1.0)


def _reason(error: BaseException) -> BaseException:
    """The error of the network, without urllib3's error around it, which quotes the URL."""
    if isinstance(error, MaxRetryError) and error.reason is not None:
        error = error.reason
    return error.__cause__ if isinstance(error.__cause__, OSError) else error


def _is_nobody_there(error: BaseException) -> bool:
    return isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno in _NOBODY_THERE)


def _retry_after(text: str | None) -> float | None:
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        return float(max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time()))
    except ValueError:
        return None


def _status_error(answer: urllib3.BaseHTTPResponse, url: str) -> SparkfusionError:
    kind = UnavailableError if answer.status in _BUSY or answer.status >= 500 else UserError
    return kind(f"{show_url(url)} answered {answer.status} {without_secrets(answer.reason or '', url)}".rstrip())


def _connection_error(error: BaseException, url: str) -> SparkfusionError:
    words = without_secrets(str(error) or type(error).__name__, url)
    hint = "check the address, and that the server runs" if _is_nobody_there(error) else None
    return UnavailableError(f"cannot reach {show_url(url)}: {words}", hint=hint)
