"""Find and read `sparkfusion.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkfusion.config.setting_values import suggest
from sparkfusion.errors import UserError
from sparkfusion.urls import url_scheme

FILE_NAME = "sparkfusion.toml"
FILE_VARIABLE = "SPARKFUSION_CONFIG"
_PROJECT_MARKS = (".git", "pyproject.toml")
_SECTIONS = ("settings", "tables", "runner")
_TABLE_KEYS = ("path", "format", "options")
_ROOT = 0


@dataclass(frozen=True)
class TableEntry:
    """A table of the file. `path` is absolute or a URL; without a `format`, the file names imply it."""

    name: str
    path: str
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConfigFile:
    """The content of a file. `settings` have full names; `on` is where tasks run, None if the file does not set it."""

    path: Path
    settings: Mapping[str, object]
    tables: tuple[TableEntry, ...] = ()
    on: str | None = None


def current_config_file() -> ConfigFile | None:
    """The file that applies to this process, read now; None if there is none."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the directory was removed
        here = Path(os.devnull)
    found = find_config_file(here, Path.home(), os.environ)
    return None if found is None else read_config_file(found)


def find_config_file(directory: Path, home: Path, environment: Mapping[str, str]) -> Path | None:
    """The file that the environment names; otherwise the nearest one in the directory and its parents.

    Parents are searched up to the root of the project or the home directory. Outside both, only the directory itself is
    searched, because a file in a place such as /tmp may be anybody's. For the same reason a file of another user is
    refused.
    """
    named = environment.get(FILE_VARIABLE)
    if named is not None:
        if named and not Path(named).is_file():
            raise UserError(
                f"{FILE_VARIABLE} names {named!r}, which is not a file",
                hint=f"correct it, or unset it; if it is empty, no {FILE_NAME} is read",
            )
        return Path(named).resolve() if named else None
    for parent in _search_path(directory, home):
        found = parent / FILE_NAME
        if found.is_file():
            _check_owner(found)
            return found
    return None


def _search_path(directory: Path, home: Path) -> Iterator[Path]:
    """The directory and its parents, up to the one where the search ends."""
    chain = [directory, *directory.parents]
    ends = [
        number
        for number, each in enumerate(chain)
        if each == home or any((each / mark).exists() for mark in _PROJECT_MARKS)
    ]
    return iter(chain[: ends[0] + 1] if ends else chain[:1])


def _check_owner(found: Path) -> None:
    if found.stat().st_uid not in (os.geteuid(), _ROOT):
        raise UserError(
            f"{found} belongs to another user, so its settings are not used",
            hint=f"if you trust it, name it: export {FILE_VARIABLE}={found}",
        )


def read_config_file(path: Path) -> ConfigFile:
    """The content of a file. Errors name the file and what is wrong in it. The session checks the values of
    settings."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    for name in content:
        _check_key(path, "section", name, _SECTIONS)
    for name in _SECTIONS:
        if not isinstance(content.get(name, {}), dict):
            raise UserError(f"{path}: {name!r} is a section", hint=f"write [{name}] on a line of its own")
    runner = content.get("runner", {})
    for name in runner:
        _check_key(path, "key of [runner]", name, ("on",))
    on = runner.get("on")
    if on is not None and not isinstance(on, str):
        raise UserError(f"{path}: 'on' must be a string", hint='write it like this: on = "spark"')
    tables = tuple(_read_table(path, name, given) for name, given in content.get("tables", {}).items())
    return ConfigFile(path, dict(_flatten(path, content.get("settings", {}))), tables, on)


def _check_key(path: Path, kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        hint = suggest(name, known) or f"known: {', '.join(known)}"
        raise UserError(f"{path}: unknown {kind} {name!r}", hint=hint)


def _flatten(path: Path, given: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The full names and values of settings. TOML reads a name with dots as nested tables."""
    for key, value in given.items():
        if isinstance(value, dict):
            yield from _flatten(path, value, f"{prefix}{key}.")
        elif isinstance(value, str | int | float):
            yield prefix + key, value
        else:
            raise UserError(f"{path}: {prefix}{key} must be a string, a number, true or false")


def _read_table(path: Path, name: str, given: object) -> TableEntry:
    """`name = "path"`, or `[tables.name]` with path, format and options."""
    entry = {"path": given} if isinstance(given, str) else given
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        raise UserError(
            f"{path}: table {name!r} has no path", hint=f'write {name} = "path", or [tables.{name}] with path = "…"'
        )
    for key in entry:
        _check_key(path, f"key of table {name!r}", key, _TABLE_KEYS)
    form, options = entry.get("format"), entry.get("options", {})
    if not isinstance(form, str | None) or not isinstance(options, dict):
        raise UserError(f"{path}: table {name!r} needs a string as format and a table as options")
    place = entry["path"]
    if url_scheme(place) is None:
        ending = "/" if place.endswith("/") else ""
        place = str(path.parent / Path(place).expanduser()) + ending
    return TableEntry(name, place, form, options)
