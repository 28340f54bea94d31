"""Fetching over HTTP: timeouts, tries again with growing pauses, and nothing secret in an error or at another host."""

from __future__ import annotations

import email.utils
import errno
import http.client
import itertools
import logging
import math
import random
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from sparkfusion.errors import QueryCancelledError, SparkfusionError, UnavailableError, UserError
from sparkfusion.feed.ready.secrets import shown_url, without_secrets

Wait = Callable[[float], bool]
"""Sleeps so many seconds; True if nobody needs the answer any more."""

_BUSY = frozenset({408, 425, 429})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_TURN_SECONDS = 0.2
_QUICK_TRIES, _QUICK_PAUSE = 3, 0.25
_NOBODY_THERE = frozenset({errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH})
_log = logging.getLogger("sparkfusion")


@dataclass(frozen=True)
class Page:
    body: bytes
    headers: Message


@dataclass(frozen=True)
class HttpClient:
    """How to fetch. It travels to workers, with its headers; it shows none of them.

    Attributes:
        timeout: seconds without an answer. `retries`: tries after the first.
        longest_wait: a server that asks for more seconds of patience (Retry-After) is an error.
    """

    timeout: float = 30.0
    retries: int = 5
    longest_wait: float = 300.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def fetch(self, url: str, headers: Mapping[str, str], wait: Wait) -> Page:
        """Get a URL. Answers 429 and 5xx and lost connections are tried again; then an `UnavailableError`.

        A host that is not there, or refuses connections, is tried a few times within a second.
        """
        tries = self.retries + 1
        for attempt in itertools.count(1):
            try:
                return self._try(url, headers)
            except urllib.error.HTTPError as error:
                with error:
                    pause, last = self._pause_after(error, url, attempt), _refused(error, url)
            except http.client.InvalidURL as error:
                raise UserError(f"{shown_url(url)} is not an http URL: {without_secrets(str(error), url)}") from None
            except (OSError, http.client.HTTPException) as error:
                pause, last = _pause(attempt), _lost(error, url)
                if _is_nobody_there(error):
                    tries = min(tries, _QUICK_TRIES)
                    pause = math.ldexp(_QUICK_PAUSE, attempt - 1)
            if attempt >= tries:
                raise last
            _log.warning("%s; asking again in %.1f s (%d of %d)", last.message, pause, attempt, tries - 1)
            if wait(pause):
                break
        raise QueryCancelledError("the query needs no more pages")

    def _try(self, url: str, headers: Mapping[str, str]) -> Page:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UserError(f"{shown_url(url)} is not an http URL")
        request = urllib.request.Request(url, headers={"Accept": "application/json", **self.headers, **headers})
        with urllib.request.build_opener(_CarefulRedirects).open(request, timeout=self.timeout) as response:
            return Page(response.read(), response.headers)

    def _pause_after(self, error: urllib.error.HTTPError, url: str, attempt: int) -> float:
        if error.code not in _BUSY and error.code < 500:
            raise _refused(error, url) from None
        asked = _retry_after(error.headers.get("Retry-After"))
        if asked is not None and asked > self.longest_wait:
            raise UnavailableError(
                f"{shown_url(url)} answered {error.code} and asks to wait {asked:.0f} seconds",
                hint=f"run the query later, or give HttpPages a longest_wait of more than {self.longest_wait:.0f}",
            ) from None
        return asked if asked is not None else _pause(attempt)


def sleep(seconds: float) -> bool:
    """Wait on a worker, in short turns, so that an interrupt gets through."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _TURN_SECONDS))
    return False


def origin(url: str) -> tuple[str, str]:
    """Whom a URL speaks to.

    >>> origin("https://u:p@api.example:443/x?y=1") == origin("https://API.example/")
    True
    """
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return parts.scheme, f"{(parts.hostname or '').lower()}:{port}"


class _CarefulRedirects(urllib.request.HTTPRedirectHandler):
    """Headers may hold keys: another host does not get them."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and origin(newurl) != origin(req.full_url):
            made.headers = {"Accept": "application/json"}
        return made


def _pause(attempt: int) -> float:
    return min(_LONGEST_PAUSE, math.ldexp(_FIRST_PAUSE, attempt - 1)) * random.uniform(0.5, 1.0)


def _is_nobody_there(error: Exception) -> bool:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, socket.gaierror) or (isinstance(reason, OSError) and reason.errno in _NOBODY_THERE)


def _retry_after(text: str | None) -> float | None:
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        return float(max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time()))
    except ValueError:
        return None


def _refused(error: urllib.error.HTTPError, url: str) -> SparkfusionError:
    kind = UnavailableError if error.code in _BUSY or error.code >= 500 else UserError
    return kind(f"{shown_url(url)} answered {error.code} {without_secrets(str(error.reason), url)}")


def _lost(error: Exception, url: str) -> SparkfusionError:
    words = without_secrets(str(error) or type(error).__name__, url)
    hint = "check the address, and that the server runs" if _is_nobody_there(error) else None
    return UnavailableError(f"cannot reach {shown_url(url)}: {words}", hint=hint)
