"""The pages of the documentation, and how their snippets run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_snippets(page: Path, spark: SparkSession | None = None, text: str | None = None) -> str:
    """Run the Python snippets of a page in order, with a `session` that has the table; gives what they printed.

    Args:
        text: run instead of the page's own.
    """
    import sparkfusion

    with sparkfusion.connect(spark) as session, contextlib.redirect_stdout(io.StringIO()) as printed:
        session.register_parquet("lineitem", "data/lineitem/")
        names: dict[str, object] = {"session": session, "spark": spark}
        for snippet in SNIPPET.findall(text or page.read_text()):
            exec(compile(snippet, str(page), "exec"), names)
        opened = names["session"]
        if isinstance(opened, sparkfusion.Session):
            opened.close()
    assert printed.getvalue()
    return printed.getvalue()
