"""URLs for messages: without the keys, passwords and parameters that may be in them."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

_HIDDEN = "***"


def hide_secrets(url: str) -> str:
    """The URL for messages: names of parameters without their values, and no user and password.

    >>> hide_secrets("https://me:hush@api.example/items?token=abc&page=2")
    'https://***@api.example/items?token=***&page=***'
    """
    parts = urlsplit(url, allow_fragments=False)
    user, _, host = parts.netloc.rpartition("@")
    netloc = f"{_HIDDEN}@{host}" if ":" in user else parts.netloc
    query = "&".join(f"{piece.partition('=')[0]}={_HIDDEN}" for piece in parts.query.split("&") if piece)
    return parts._replace(netloc=netloc, query=query).geturl()


def without_secrets(text: str, url: str) -> str:
    """Another library's message about a URL, without the secrets of that URL."""
    parts = urlsplit(url, allow_fragments=False)
    user = parts.netloc.rpartition("@")[0]
    secrets = {value for _, value in parse_qsl(parts.query, keep_blank_values=True)}
    secrets |= {piece.partition("=")[2] for piece in parts.query.split("&")}
    if ":" in user:
        secrets |= {user, unquote(user), *user.split(":"), *map(unquote, user.split(":"))}
    text = text.replace(url, hide_secrets(url))
    for secret in sorted((each for each in secrets if len(each) > 3), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text
