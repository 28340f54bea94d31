"""Settings: the list of them, the values of a session, and where values come from.

The order in which sources are read is in `given_settings.py` and in `docs/settings.md`.
"""

from sparkfusion.config.machine_limits import available_cores, fair_share, machine_memory, resident_bytes, task_share
from sparkfusion.config.setting_list import ALWAYS, DIALECTS, MIB, PREFIX, SETTINGS, Setting, SettingType
from sparkfusion.config.setting_values import check_dialect, lookup, parse, suggest
from sparkfusion.config.settings import Settings

__all__ = [
    "ALWAYS",
    "DIALECTS",
    "MIB",
    "PREFIX",
    "SETTINGS",
    "Setting",
    "SettingType",
    "Settings",
    "available_cores",
    "check_dialect",
    "fair_share",
    "lookup",
    "machine_memory",
    "parse",
    "resident_bytes",
    "suggest",
    "task_share",
]
