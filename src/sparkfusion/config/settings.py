"""The values of one session's `sparkfusion.*` settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkfusion.config.machine_limits import available_cores, fair_share, frame_memory
from sparkfusion.config.setting_list import PREFIX, SETTINGS
from sparkfusion.config.setting_values import lookup, parse
from sparkfusion.urls import is_url, plain_path


class Settings(Mapping[str, "int | bool | str"]):
    """The values of one session. Values of the user override defaults; `*_or_default` turn "auto" into numbers."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, int | bool | str] = {each.name: each.default for each in SETTINGS}
        for name, value in (values or {}).items():
            self.set(name, value)

    def set(self, name: str, value: object) -> None:
        self._values[name] = parse(name, value)

    def reset(self, name: str) -> None:
        self._values[name] = lookup(name).default

    def copy(self) -> Settings:
        return Settings(self._values)

    def __getitem__(self, name: str) -> int | bool | str:
        lookup(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def integer(self, short_name: str) -> int:
        return int(self._values[PREFIX + short_name])

    def flag(self, short_name: str) -> bool:
        return bool(self._values[PREFIX + short_name])

    def text(self, short_name: str) -> str:
        return str(self._values[PREFIX + short_name])

    def compression(self, *, leaves_machine: bool) -> str:
        chosen = self.text("frame_compression")
        return chosen if chosen != "auto" else "lz4" if leaves_machine else "none"

    def directory(self) -> str:
        """`store_dir` if it is a directory of this machine, otherwise empty: a URL is for frames on Spark only."""
        chosen = self.text("store_dir")
        return "" if is_url(chosen) else plain_path(chosen)

    def slots_or_default(self) -> int:
        return self.integer("slots") or available_cores()

    def task_memory_or_default(self) -> int:
        return self.integer("task_memory_bytes") or fair_share(self.slots_or_default())

    def store_memory_or_default(self) -> int:
        chosen = self.integer("store_memory_bytes")
        return frame_memory() if chosen < 0 else chosen
