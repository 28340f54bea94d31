"""URLs as text: split them, join them, and show them without their secrets."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, quote, unquote, unquote_plus, urlsplit

LOCAL_STORE = "file:///"
"""What DataFusion calls the object store of files on this machine."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HTTP = ("http", "https")
_SHOWN_PARAMETERS = frozenset({"region", "scheme", "endpoint_override"})
_HIDDEN = "***"


def url_scheme(text: str) -> str | None:
    """The scheme of a URL, in lower case; None for a plain path.

    >>> url_scheme("S3://bucket/x"), url_scheme("/mnt/x")
    ('s3', None)
    """
    found = _URL.match(text)
    return found[1].lower() if found is not None else None


def is_url(text: str) -> bool:
    """Whether the files are remote. False for a plain path and for a `file:` URL.

    >>> is_url("s3://bucket/frames"), is_url("/mnt/frames"), is_url("file:///mnt/frames")
    (True, False, False)
    """
    return url_scheme(text) not in (None, "file")


def plain_path(text: str) -> str:
    """The path of a directory that is given as a path or as a `file:` URL.

    >>> plain_path("file:///mnt/my%20frames"), plain_path("frames")
    ('/mnt/my frames', 'frames')
    """
    return decoded_path(text) if url_scheme(text) == "file" else text


def decoded_path(url: str) -> str:
    """The path of any URL as file systems use it, without scheme, host and escapes.

    >>> decoded_path("s3://bucket/my%20frames/?region=eu-west-1")
    '/my frames/'
    """
    return unquote(urlsplit(url).path)


def join(url: str, *names: str) -> str:
    """The URL of something below another URL. The parameters after the `?` stay at the end.

    >>> join("s3://bucket/frames/?region=eu-west-1", "a", "b")
    's3://bucket/frames/a/b?region=eu-west-1'
    """
    parts = split_url(url)
    path = "/".join([parts.path.rstrip("/"), *map(quote, names)])
    return parts._replace(path=path).geturl()


def bare(url: str) -> str:
    """The URL as a name, without parameters. It never contains a secret.

    >>> bare("s3://key:secret@bucket/frames?region=eu-west-1")
    's3://bucket/frames'
    """
    parts = split_url(url)
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}{host}" if ":" not in user else host, query="").geturl()


def show_url(url: str) -> str:
    """The URL for messages and logs: keys, passwords and parameters that may be secret are hidden.

    >>> show_url("s3://bucket/x?access_key=AKIA&secret_key=hush&region=eu-west-1")
    's3://bucket/x?region=eu-west-1&***'
    >>> show_url("https://me:hush@api.example/items?token=abc&page=2")
    'https://***@api.example/items?token=***&page=***'
    """
    parts = split_url(url)
    user, _, host = parts.netloc.rpartition("@")
    netloc = f"{_HIDDEN}@{host}" if ":" in user else parts.netloc
    pieces = [piece for piece in parts.query.split("&") if piece]
    if parts.scheme in _HTTP:
        shown = [f"{piece.partition('=')[0]}={_HIDDEN}" for piece in pieces]
    else:  # a secret may contain an unescaped `&`, so a part of it may look like a parameter's name
        shown = [piece for piece in pieces if piece.split("=")[0] in _SHOWN_PARAMETERS]
        shown += [_HIDDEN] if len(shown) < len(pieces) else []
    return parts._replace(netloc=netloc, query="&".join(shown)).geturl()


def without_secrets(text: str, url: str) -> str:
    """Another library's message about a URL, without the secrets of that URL."""
    text = text.replace(url, show_url(url))
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def split_object(url: str) -> tuple[str, str]:
    """The store of an object, and its name there, unchanged: `#`, `?` and `%` may be part of it.

    >>> split_object("s3://bucket/a/b#c?d%20e.parquet")
    ('s3://bucket/', 'a/b#c?d%20e.parquet')
    """
    scheme, _, rest = url.partition("://")
    host, _, name = rest.partition("/")
    return f"{scheme}://{host}/", name


def split_url(url: str) -> SplitResult:
    """The parts of a URL. A secret before the `@` may contain an unescaped `/`: half of all secrets do."""
    parts = urlsplit(url, allow_fragments=False)
    if parts.scheme == "s3" and ":" in parts.netloc and "@" not in parts.netloc and "@" in parts.path:
        rest, _, after = parts.path.rpartition("@")
        bucket, slash, path = after.partition("/")
        parts = parts._replace(netloc=f"{parts.netloc}{quote(rest, safe='%')}@{bucket}", path=slash + path)
    return parts


def _secrets(url: str) -> set[str]:
    """Everything that `show_url` hides, both as written and decoded."""
    parts = split_url(url)
    shown = () if parts.scheme in _HTTP else _SHOWN_PARAMETERS
    pairs = [piece.partition("=") for piece in parts.query.split("&")]
    hidden = [value for name, _, value in pairs if name not in shown]
    user = parts.netloc.rpartition("@")[0]
    hidden += [user, *user.split(":")] if ":" in user else []
    found = {text for each in hidden for text in (each, unquote(each), unquote_plus(each))}
    return {secret for secret in found if len(secret) > 3}  # hiding every "1" would ruin the message
