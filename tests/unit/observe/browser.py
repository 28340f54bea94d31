"""A page as a browser sees it, if one is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def draw_in_browser(browser: str, page: str, directory: Path) -> str:
    """The page's DOM after its scripts ran, as HTML."""
    file = directory / "page.html"
    file.write_text(page, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"]
    profile = f"--user-data-dir={directory / 'profile'}"
    ran = subprocess.run(
        [browser, *options, profile, "--dump-dom", file.as_uri()], capture_output=True, check=True, timeout=120
    )
    return ran.stdout.decode()
