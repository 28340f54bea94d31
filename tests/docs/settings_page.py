"""`docs/settings.md`, made from the list of settings: `python -m tests.docs.settings_page` writes it."""

from __future__ import annotations

from pathlib import Path

from sparkfusion.config import SETTINGS, Setting
from sparkfusion.session.session_settings import show_value

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

_INTRODUCTION = """# Settings

You can set them with `SET sparkfusion.name = 'value'`, with `session.config["sparkfusion.name"] = value`, or with
`sparkfusion.connect(config={...})`. DataFusion's own options are set in the same ways. `SHOW ALL VERBOSE` and
`information_schema.df_settings` list both. Sizes may have a unit: `'64KiB'`, `'16MiB'`, `'2GiB'`. A setting applies
to every query that is planned after it.

| setting | default | what it means |
|---|---|---|
"""


def render() -> str:
    return _INTRODUCTION + "".join(f"| `{s.name}` | {_default(s)} | {_meaning(s)} |\n" for s in SETTINGS)


def _default(setting: Setting) -> str:
    return f"`{show_value(setting.default)}`" if setting.default != "" else "empty"


def _meaning(setting: Setting) -> str:
    choices = f" One of {', '.join(f'`{choice}`' for choice in setting.choices)}." if setting.choices else ""
    return setting.doc + choices


if __name__ == "__main__":
    PAGE.write_text(render())
