"""Secrets that processes share: tokens of workers and of sessions, secrets of queries."""

from __future__ import annotations

import hmac
import secrets


def new_secret() -> str:
    """A new secret: 32 random bytes, as text that is safe in URLs, headers and the command line."""
    return secrets.token_urlsafe(32)


def is_same_secret(shown: str, expected: str) -> bool:
    """Whether a caller has the secret. The comparison takes constant time.

    >>> is_same_secret("a", "a"), is_same_secret("a", "ä")
    (True, False)
    """
    return hmac.compare_digest(shown.encode(), expected.encode())
