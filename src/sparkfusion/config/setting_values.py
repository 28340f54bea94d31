"""Find a setting by its name, and check a value for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sparkfusion.config.setting_list import MIB, SETTINGS, Setting
from sparkfusion.errors import UnknownSettingError, UserError

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_UNITS = {"": 1, "b": 1, "k": 1024, "kb": 1024, "kib": 1024, "m": MIB, "mb": MIB, "mib": MIB}
_UNITS |= {"g": 1024 * MIB, "gb": 1024 * MIB, "gib": 1024 * MIB}


def lookup(name: str) -> Setting:
    """The setting of that name, or an error that names the nearest one."""
    found = _BY_NAME.get(name)
    if found is None:
        raise UnknownSettingError(f"unknown setting {name!r}", hint=suggest(name, _BY_NAME, cutoff=0.0))
    return found


def suggest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """A hint with the known name that is nearest; None if none is near.

    >>> suggest("tabels", ["settings", "tables"])
    "did you mean 'tables'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else None


def parse(name: str, value: object) -> int | bool | str:
    """Check a value and convert it to the setting's type; sizes may have a unit.

    >>> parse("sparkfusion.bytes_per_partition", "4MiB")
    4194304
    """
    setting = lookup(name)
    text = str(value).strip()
    if setting.type == "bool":
        if text.lower() not in ("true", "false", "1", "0"):
            raise UserError(f"{name} takes true or false, not {text!r}")
        return text.lower() in ("true", "1")
    if setting.type == "choice":
        if text not in setting.choices:
            near = suggest(text.lower(), setting.choices)
            raise UserError(f"{name} takes one of {', '.join(setting.choices)}, not {text!r}", hint=near)
        return text
    if setting.type == "text":
        return text
    number = _parse_number(name, text, with_unit=setting.type == "bytes")
    if number < setting.minimum:
        raise UserError(f"{name} must be at least {setting.minimum}, not {text}")
    return number


def check_dialect(name: str) -> str:
    """The name of a dialect; raises if there is none of this name."""
    return str(parse("sparkfusion.dialect", name))


def _parse_number(name: str, text: str, *, with_unit: bool) -> int:
    digits = text.rstrip("BKMGibkmg ") if with_unit else text
    unit = text[len(digits) :].strip().lower()
    try:
        return int(digits.replace("_", "")) * _UNITS[unit]
    except (ValueError, KeyError):
        what = "a size such as 16777216 or 16MiB" if with_unit else "a whole number"
        raise UserError(f"{name} takes {what}, not {text!r}") from None
