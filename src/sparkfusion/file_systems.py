"""Arrow's file systems of URLs: opened once for each store, with errors that have the URL but not its secrets."""

from __future__ import annotations

import atexit
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import ExternalError, SparkfusionError, UserError, classify, first_words
from sparkfusion.urls import is_url, plain_path, show_url, split_object, split_url, without_secrets

_S3_KEYS = frozenset({"access_key", "secret_key", "session_token"})
_REFUSED = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY|SIGNATURE|INVALID_CLIENT_TOKEN|UNRECOGNIZED_CLIENT|EXPIRED_TOKEN"
    r"|HTTP status 40[13]|[Ff]orbidden|PERMISSION_DENIED|UNAUTHENTICATED|[Pp]ermission denied|AccessControlException"
    r"|AuthenticationFailed|AuthorizationFailure|ContainerNotFound|[Bb]ucket .*(not found|does not exist)"
)


def open_url(url: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URL, one for each store in the life of a process, and the path in it.

    Arrow defines the parameters after the `?`, for S3 for example `region`, `endpoint_override`, `scheme`. Credentials
    are found as the cloud's own tools find them (environment, configuration files, the role of the machine), or they
    are in the URL: `s3://KEY:SECRET@bucket`, or `access_key`, `secret_key` and `session_token` after the `?`.
    """
    parts = split_url(url)
    with classify_errors(url, "open"):
        system, root = _file_system(parts.scheme, parts.netloc, parts.query)
    path = unquote(parts.path).strip("/")
    return system, f"{root.rstrip('/')}/{path}" if path else root


@lru_cache(maxsize=32)
def _file_system(scheme: str, netloc: str, query: str) -> tuple[fs.FileSystem, str]:
    parameters = dict(parse_qsl(query.replace("+", "%2B")))  # a `+` is common in secrets, and is not a space
    if scheme == "s3" and not _S3_KEYS.isdisjoint(parameters):
        return _s3_with_keys(netloc, parameters)
    if scheme == "s3":  # with this, a small file takes one request instead of three
        query = urlencode({"allow_delayed_open": "true", **parameters})
    system, root = fs.FileSystem.from_uri(SplitResult(scheme, netloc, "/", query, "").geturl())
    return system, root


def _s3_with_keys(bucket: str, parameters: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """Open S3 with the keys of a URL's parameters. Arrow accepts keys in a URL only before the `@`, and no session
    token at all."""
    options = dict(parameters)
    if not {"region", "endpoint_override"} & options.keys():
        options["region"] = fs.resolve_s3_region(bucket)
    try:
        return fs.S3FileSystem(**options, allow_delayed_open=True), bucket
    except TypeError as error:  # an unknown parameter
        raise ValueError(str(error)) from None


def file_size(path: str) -> int:
    """The bytes of a file, given by a path or a URL."""
    if not is_url(path):
        return Path(plain_path(path)).stat().st_size
    store, name = split_object(path)
    with classify_errors(path, "find"):
        filesystem, root = open_url(store)
        found = filesystem.get_file_info(f"{root.rstrip('/')}/{name}")
        if found.type != fs.FileType.File:
            raise FileNotFoundError(f"there is no file {show_url(path)}")
        return int(found.size)


def forget_file_systems() -> None:
    """Close the file systems that `open_url` opened. Called at the end of the process, before Arrow ends its S3 client:
    Arrow registered its own function earlier."""
    _file_system.cache_clear()


@contextmanager
def classify_errors(url: str, doing: str, *, missing: bool = False) -> Iterator[None]:
    """Classify errors of a file system, and add the URL without its secrets.

    Refused access and a missing bucket would fail again, so they are user errors. Other errors come from the network or
    the store, and may be retried.

    Args:
        missing: whether the caller handles a `FileNotFoundError`.
    """
    try:
        yield
    except SparkfusionError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(show_url(url)) if missing else _error_about(error, url, doing) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _error_about(error, url, doing) from None  # Arrow's own message may quote the URL


def _error_about(error: Exception, url: str, doing: str) -> SparkfusionError:
    words = without_secrets(first_words(error), url)
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


atexit.register(forget_file_systems)
