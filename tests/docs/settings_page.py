"""The table of `docs/settings.md`, made from the list of settings: `python -m tests.docs.settings_page` writes it."""

from __future__ import annotations

from pathlib import Path

from sparkfusion.config import SETTINGS, Setting
from sparkfusion.session.session_settings import show_value

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

_HEADING = "| setting | default | what it means |\n|---|---|---|\n"


def render() -> str:
    """The page: what is written before the table stays."""
    introduction = PAGE.read_text().partition(_HEADING)[0]
    return introduction + _HEADING + "".join(f"| `{s.name}` | {_default(s)} | {_meaning(s)} |\n" for s in SETTINGS)


def _default(setting: Setting) -> str:
    return f"`{show_value(setting.default)}`" if setting.default != "" else "empty"


def _meaning(setting: Setting) -> str:
    choices = f" One of {', '.join(f'`{choice}`' for choice in setting.choices)}." if setting.choices else ""
    return setting.doc + choices


if __name__ == "__main__":
    PAGE.write_text(render())
