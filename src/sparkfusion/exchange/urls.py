"""URLs of remote stores: opened with Arrow's file systems, shown without their secrets, and named in errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import ExternalError, SparkfusionError, UserError, classify, first_words

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SHOWN_PARAMETERS = frozenset({"region", "scheme", "endpoint_override"})
_S3_KEYS = frozenset({"access_key", "secret_key", "session_token"})
_HIDDEN = "***"
_REFUSED = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY|SIGNATURE|INVALID_CLIENT_TOKEN|UNRECOGNIZED_CLIENT|EXPIRED_TOKEN"
    r"|HTTP status 40[13]|[Ff]orbidden|PERMISSION_DENIED|UNAUTHENTICATED|[Pp]ermission denied|AccessControlException"
    r"|AuthenticationFailed|AuthorizationFailure|ContainerNotFound|[Bb]ucket .*(not found|does not exist)"
)


def is_url(text: str) -> bool:
    """Whether a store is remote. A plain path is not, and neither is a `file:` URL: it names a directory.

    >>> is_url("s3://bucket/frames"), is_url("/mnt/frames"), is_url("file:///mnt/frames")
    (True, False, False)
    """
    found = _URL.match(text)
    return found is not None and found[1].lower() != "file"


def plain_path(text: str) -> str:
    """The path of a directory that is given as a path or as a `file:` URL.

    >>> plain_path("file:///mnt/my%20frames"), plain_path("frames")
    ('/mnt/my frames', 'frames')
    """
    return unquote(urlsplit(text).path) if text.lower().startswith("file://") else text


def join(url: str, *names: str) -> str:
    """The URL of something below another one. What follows the `?` stays at the end.

    >>> join("s3://bucket/frames/?region=eu-west-1", "a", "b")
    's3://bucket/frames/a/b?region=eu-west-1'
    """
    parts = _split(url)
    path = "/".join([parts.path.rstrip("/"), *map(quote, names)])
    return parts._replace(path=path).geturl()


def bare(url: str) -> str:
    """The URL as a name, without parameters. It never holds a secret.

    >>> bare("s3://key:secret@bucket/frames?region=eu-west-1")
    's3://bucket/frames'
    """
    parts = _split(url)
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}{host}" if ":" not in user else host, query="").geturl()


def show_url(url: str) -> str:
    """The URL for messages and logs: keys, passwords and parameters that may be secret are hidden.

    >>> show_url("s3://bucket/x?access_key=AKIA&secret_key=hush&region=eu-west-1")
    's3://bucket/x?region=eu-west-1&***'
    >>> show_url("s3://AKIA:hush@bucket/x")
    's3://***@bucket/x'
    """
    parts = _split(url)
    user, _, host = parts.netloc.rpartition("@")
    netloc = f"{_HIDDEN}@{host}" if ":" in user else parts.netloc
    pieces = parts.query.split("&") if parts.query else []
    open_pieces = [piece for piece in pieces if piece.split("=")[0] in _SHOWN_PARAMETERS]
    hidden = [_HIDDEN] if len(open_pieces) < len(pieces) else []
    return parts._replace(netloc=netloc, query="&".join(open_pieces + hidden)).geturl()


def open_url(url: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URL, one for each store in the life of a process, and the path in it.

    Arrow defines the parameters after the `?`, for S3 for example `region`, `endpoint_override`, `scheme`. Keys are
    found as the cloud's own tools find them (environment, configuration files, the role of the machine), or they are in
    the URL: `s3://KEY:SECRET@bucket`, or `access_key`, `secret_key` and `session_token` after the `?`.
    """
    parts = _split(url)
    with naming(url, "open"):
        system, root = _file_system(parts.scheme, parts.netloc, parts.query)
    path = unquote(parts.path).strip("/")
    return system, f"{root.rstrip('/')}/{path}" if path else root


@lru_cache(maxsize=32)
def _file_system(scheme: str, netloc: str, query: str) -> tuple[fs.FileSystem, str]:
    parameters = _parameters(query)
    if scheme == "s3" and not _S3_KEYS.isdisjoint(parameters):
        return _s3_with_keys(netloc, parameters)
    if scheme == "s3":  # a small file then takes one request instead of three
        query = urlencode({"allow_delayed_open": "true", **parameters})
    system, root = fs.FileSystem.from_uri(SplitResult(scheme, netloc, "/", query, "").geturl())
    return system, root


def _s3_with_keys(bucket: str, parameters: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """Arrow accepts keys in a URL only before the `@`, and no session token at all."""
    options = dict(parameters)
    if not {"region", "endpoint_override"} & options.keys():
        options["region"] = fs.resolve_s3_region(bucket)
    try:
        return fs.S3FileSystem(**options, allow_delayed_open=True), bucket
    except TypeError as error:  # a parameter that it does not know
        raise ValueError(str(error)) from None


def split_object(url: str) -> tuple[str, str]:
    """The store of an object, and its name there, unchanged: `#`, `?` and `%` may be part of it.

    >>> split_object("s3://bucket/a/b#c?d%20e.parquet")
    ('s3://bucket/', 'a/b#c?d%20e.parquet')
    """
    scheme, _, rest = url.partition("://")
    host, _, name = rest.partition("/")
    return f"{scheme}://{host}/", name


def file_size(path: str) -> int:
    """The bytes of a file, given by a path or a URL."""
    if not is_url(path):
        return Path(plain_path(path)).stat().st_size
    store, name = split_object(path)
    with naming(path, "find"):
        filesystem, root = open_url(store)
        found = filesystem.get_file_info(f"{root.rstrip('/')}/{name}")
        if found.type != fs.FileType.File:
            raise FileNotFoundError(f"there is no file {show_url(path)}")
        return int(found.size)


def forget_file_systems() -> None:
    """Close what `open_url` opened, at the end of the process, before Arrow ends its S3 client."""
    _file_system.cache_clear()


@contextmanager
def naming(url: str, doing: str) -> Iterator[None]:
    """Classify errors of a file system, and add the URL without its secrets.

    Refused access and a missing bucket will fail again: a user's error. Other errors come from the network or the
    store, and may be retried.
    """
    try:
        yield
    except SparkfusionError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _error_about(error, url, doing) from None  # Arrow's own words may quote the URL


def _error_about(error: Exception, url: str, doing: str) -> SparkfusionError:
    words = _without_secrets(first_words(error), url)
    message = f"cannot {doing} {show_url(url)}: {words}"
    if "libjvm" in words or "libhdfs" in words:
        return UserError(message, hint="hdfs:// needs Hadoop's libraries: JAVA_HOME, HADOOP_HOME and CLASSPATH")
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return UserError(message, hint="is the URL spelled as Arrow expects it?")
    if isinstance(error, PermissionError) or _REFUSED.search(words):
        return UserError(message, hint="check that the bucket exists, and the keys and rights of this machine")
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, FileNotFoundError):
        found = classify(error)
        return type(found)(message, hint=found.hint)
    return ExternalError(message)


def _without_secrets(text: str, url: str) -> str:
    text = text.replace(url, show_url(url))
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(url: str) -> set[str]:
    """Everything that `show_url` hides, as it is written and decoded."""
    parts = _split(url)
    pairs = [piece.partition("=") for piece in parts.query.split("&")]
    found = {text for name, _, value in pairs if name not in _SHOWN_PARAMETERS for text in (value, unquote(value))}
    user = parts.netloc.rpartition("@")[0]
    if ":" in user:
        found |= {text for part in (user, *user.split(":")) for text in (part, unquote(part))}
    return {secret for secret in found if len(secret) > 3}  # "true" may go, "1" would take the message apart


def _split(url: str) -> SplitResult:
    """The parts of a URL. A secret before the `@` may hold an unescaped `/`: half of all secrets do."""
    parts = urlsplit(url, allow_fragments=False)
    if parts.scheme == "s3" and ":" in parts.netloc and "@" not in parts.netloc and "@" in parts.path:
        rest, _, after = parts.path.rpartition("@")
        bucket, slash, path = after.partition("/")
        parts = parts._replace(netloc=f"{parts.netloc}{quote(rest, safe='%')}@{bucket}", path=slash + path)
    return parts


def _parameters(query: str) -> dict[str, str]:
    """The parameters after the `?`. A `+` stays a `+`: it is common in secrets."""
    return dict(parse_qsl(query.replace("+", "%2B")))
