"""List and open files of this machine, and of everything that Arrow's file systems reach."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import UserError
from sparkfusion.file_systems import classify_errors, open_url
from sparkfusion.formats import is_compressed
from sparkfusion.urls import bare, is_url, plain_path, split_url, url_scheme

_SCHEMES = {"s3": "s3", "gcs": "gs", "abfs": "abfs"}
_NOT_IN_URLS = re.compile(r"[?#]")


@dataclass(frozen=True)
class Entry:
    """A file or directory in a listing. `path` is as in work units; `modified` is in seconds, 0 if it is not known."""

    path: str
    name: str
    is_directory: bool
    size: int = 0
    modified: float = 0.0


class FileAccess(Protocol):
    """Lists and opens files. Arguments and results are paths as in work units. Any thread may call any method."""

    def list(self, directory: str) -> Iterator[Entry]:
        """The entries of a directory, as they are found. `FileNotFoundError` if there is no such directory."""
        ...

    def entry(self, path: str) -> Entry | None:
        """The file or directory at a path; None if there is nothing."""
        ...

    def open(self, path: str) -> Any:
        """An Arrow file that can be read at any position."""
        ...


class LocalFileAccess:
    """Directories of this machine."""

    def list(self, directory: str) -> Iterator[Entry]:
        with os.scandir(directory) as found:
            for each in found:
                try:
                    status = each.stat()
                except FileNotFoundError:  # removed meanwhile, or a link to nowhere
                    continue
                if stat.S_ISDIR(status.st_mode) and each.is_symlink():
                    _check_no_loop(each.path)
                made = _local_entry(each.path, status)
                if made is not None:
                    yield made

    def entry(self, path: str) -> Entry | None:
        try:
            return _local_entry(path, Path(path).stat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str) -> Any:
        return pa.OSFile(path, "rb")


class ArrowFileAccess:
    """A file system of Arrow. Its paths begin with `root`, and the URLs of the same files with `base`."""

    def __init__(self, filesystem: fs.FileSystem, base: str, root: str) -> None:
        self._filesystem = filesystem
        self._base = base
        self._root = root

    def list(self, directory: str) -> Iterator[Entry]:
        with classify_errors(directory, "list", missing=True):
            found = self._filesystem.get_file_info(fs.FileSelector(self._inner(directory), recursive=False))
        for info in found:
            yield self._entry(f"{directory.rstrip('/')}/{info.base_name}", info)

    def entry(self, path: str) -> Entry | None:
        with classify_errors(path, "find", missing=True):
            info = self._filesystem.get_file_info(self._inner(path))
        return self._entry(path, info) if info.type in (fs.FileType.File, fs.FileType.Directory) else None

    def open(self, path: str) -> Any:
        with classify_errors(path, "open", missing=True):
            return self._filesystem.open_input_file(self._inner(path))

    def _inner(self, path: str) -> str:
        below = path.removeprefix(self._base).strip("/")
        return f"{self._root}/{below}" if below else self._root or "/"

    def _entry(self, path: str, info: Any) -> Entry:
        if _NOT_IN_URLS.search(path):
            raise UserError(f"{path!r} cannot be read: a file name with '?' or '#' is not possible in a URL")
        modified = info.mtime_ns / 1e9 if info.mtime_ns is not None else 0.0
        directory = info.type == fs.FileType.Directory
        return Entry(path, info.base_name, directory, info.size or 0, modified)


def locate(path: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> tuple[FileAccess, str]:
    """The access to the files of a path or URL, and the path as units hold it: absolute, and without secrets."""
    text = os.fspath(path)
    if not text:
        raise UserError("a path is empty")
    if url_scheme(text) == "file":
        return LocalFileAccess(), plain_path(text)
    if is_url(text):
        return _remote(text, filesystem)
    while isinstance(filesystem, fs.SubTreeFileSystem):
        text = f"{filesystem.base_path.rstrip('/')}/{text.lstrip('/')}"
        filesystem = filesystem.base_fs
    if filesystem is None or isinstance(filesystem, fs.LocalFileSystem):
        return LocalFileAccess(), str(Path(text).absolute())
    scheme = _SCHEMES.get(filesystem.type_name)
    if scheme is None:
        raise UserError(
            f"{text!r} in a file system of type {filesystem.type_name!r} has no URL, which DataFusion needs",
            hint="give the whole URL, with the scheme that its object store is registered for",
        )
    return _remote(f"{scheme}://{text.lstrip('/')}", filesystem)


def refuse_compressed(path: str) -> None:
    """Raise if the file is compressed: encoded plans do not have the compression, so a feed cannot read it."""
    if is_compressed(path):
        raise UserError(
            f"a feed of files cannot read {path!r}, because the file is compressed",
            hint="unpack it, use Parquet, or read it with Items(paths, reader=…)",
        )


def open_path(path: str) -> Any:
    """Open the file of any unit."""
    access, place = locate(path)
    return access.open(place)


def _remote(url: str, filesystem: fs.FileSystem | None) -> tuple[FileAccess, str]:
    parts = split_url(url)
    base = bare(parts._replace(path="", query="").geturl())
    if filesystem is None:
        filesystem, root = open_url(parts._replace(path="/").geturl())
    else:
        root = "" if filesystem.type_name == "hdfs" else base.partition("://")[2].rpartition("@")[2]
    return ArrowFileAccess(filesystem, base, root.rstrip("/")), f"{base}{parts.path}".rstrip("/")


def _local_entry(path: str, status: os.stat_result) -> Entry | None:
    directory = stat.S_ISDIR(status.st_mode)
    if not directory and not stat.S_ISREG(status.st_mode):
        return None
    return Entry(path, Path(path).name, directory, status.st_size, status.st_mtime)


def _check_no_loop(link: str) -> None:
    above, target = Path(link).parent.resolve(), Path(link).resolve()
    if target == above or target in above.parents:
        raise UserError(f"{link!r} is a link to a directory above it, so listing it would never end")
