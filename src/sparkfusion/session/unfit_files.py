"""Errors for files that cannot become a table: there is no file, a file is empty, or a file is a JSON array."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.urls import plain_path

_NO_FILES = "No files found at"
_GLOB = frozenset("*?[")
_GIVE_COLUMNS = "or give the columns: with schema=…, or in CREATE EXTERNAL TABLE"
ONE_PER_LINE = "write one object per line, without brackets and commas around them"
_SPACE = b" \t\r\n\xef\xbb\xbf"


def finds_no_files(error: BaseException) -> bool:
    """Whether DataFusion found no file to read the columns from."""
    return _NO_FILES in str(error)


def no_files(source: Any, format: str) -> UserError:
    """The error for a pattern or a directory without files. `source`: what the user gave."""
    if isinstance(source, list | tuple):
        return UserError(f"there is no {format} file in {' or '.join(map(repr, map(str, source)))}")
    shown = str(source)
    if _GLOB & set(shown) and not Path(shown).exists():
        return UserError(f"no file matches {shown!r}", hint=f"correct the pattern, {_GIVE_COLUMNS}")
    return UserError(f"there is no {format} file in {shown!r}", hint=f"add one, {_GIVE_COLUMNS}")


def check_not_empty(source: Any, format: str) -> None:
    """Refuse a file of 0 bytes whose columns nobody gave: its table would have none. Directories may have such files
    beside others."""
    if not isinstance(source, str | PathLike):
        return
    file = Path(plain_path(str(source)))
    if not file.is_file() or file.stat().st_size:
        return
    if format in ("csv", "json"):
        raise UserError(
            f"the file {str(source)!r} is empty, so its columns are unknown", hint=f"fill it, {_GIVE_COLUMNS}"
        )
    raise UserError(
        f"the file {str(source)!r} is empty, so it is not a valid {format} file",
        hint="it may not have been written completely: write it again",
    )


def find_array(files: Sequence[str]) -> str | None:
    """The first of some JSON files of this machine that is an array, in words; None if there is none."""
    for file in (file for file in files if Path(file).is_file()):
        with Path(file).open("rb") as opened:
            if opened.read(256).lstrip(_SPACE).startswith(b"["):
                return f"the file {file!r} is a JSON array, and a table of JSON has one object in each line"
    return None
