"""The pages of the documentation, and how their snippets run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from sparkfusion import Session

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_snippets(page: Path, text: str | None = None, session: Session | None = None) -> str:
    """Run the Python snippets of a page in order, as a user would paste them; gives what they printed.

    Args:
        text: run instead of the page's own.
        session: for a page that goes on where the README ended.
    """
    names: dict[str, object] = {} if session is None else {"session": session}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            for snippet in SNIPPET.findall(text or page.read_text()):
                exec(compile(snippet, str(page), "exec"), names)
        finally:
            opened = names.get("session")
            if isinstance(opened, Session):
                opened.close()
    assert printed.getvalue()
    return printed.getvalue()
