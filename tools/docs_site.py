"""What `mkdocs.yml` cannot say: how files of the repository become pages of the site. mkdocs calls the `on_` functions.

README.md is the start page, and CHANGELOG.md and the programs in examples/ have pages too. They keep their places in
the repository, so links between them and docs/ are rewritten here. A link to any other file of the repository, such as
a test, becomes the name of that file: the site does not know where the repository is published.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]\n]+)\]\((?!\w+:)([^)#\s]+)(#[\w.-]+)?\)")
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
_DETAILS = re.compile(r"^<details>", re.MULTILINE)
_LISTED = {
    "adr/README.md": lambda: [f"adr/{page.name}" for page in sorted((ROOT / "docs" / "adr").glob("0*.md"))],
    "examples/index.md": lambda: [page for page in pages().values() if page.startswith("examples/")][1:],
}
"""Pages of the navigation that stand for more pages, which come after them."""
_titles: dict[str, str] = {}
"""The titles of pages in the navigation, since the last `on_config`."""


def pages() -> dict[str, str]:
    """The pages that are made of files outside of docs/: the path of each file, and its page."""
    programs = sorted((ROOT / "examples").glob("*.py"))
    return {
        "README.md": "index.md",
        "CHANGELOG.md": "changelog.md",
        "examples/README.md": "examples/index.md",
        **{f"examples/{program.name}": f"examples/{program.stem}.md" for program in programs},
    }


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List decisions and example programs in the navigation, so that a new one needs no line in mkdocs.yml, and learn
    the titles of pages."""
    config.nav = _listed(config.nav)
    _titles.clear()
    _titles.update(_titles_in(config.nav))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for source, page in pages().items():
        text = (ROOT / source).read_text()
        if source.endswith(".py"):
            text = f"# {source.removeprefix('examples/')}\n\n```python\n{text}```\n"
        files.append(File.generated(config, page, content=rewrite(text, source, page)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page in docs/ lead to pages of the site."""
    if page.file.generated_by is None:
        markdown = rewrite(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)
    return _DETAILS.sub("<details markdown>", markdown)


def rewrite(text: str, source: str, page: str) -> str:
    """The text of a file of the repository as the text of a page: its links lead to pages.

    >>> rewrite("[five minutes](../README.md#try-it)", "docs/tutorial.md", "tutorial.md")
    '[five minutes](index.md#try-it)'
    >>> rewrite("[deploy](docs/deploy.md)", "README.md", "index.md")
    '[deploy](deploy.md)'
    >>> rewrite("[the tests](../tests/docs)", "docs/contributing.md", "contributing.md")
    'the tests (`tests/docs`)'
    """
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(lambda link: _lead(link, source, page), part) for part in parts[::2]]
    return "".join(parts)


def _lead(link: re.Match[str], source: str, page: str) -> str:
    words, path, section = link[1], link[2], link[3] or ""
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    target = pages().get(meant)
    if target is None and (meant.startswith("docs/") or not (ROOT / meant).exists()):
        target = meant.removeprefix("docs/")  # a page of docs/; if there is none, the build fails
    if target is None:
        return f"`{meant}`" if words.strip("`") == meant else f"{words} (`{meant}`)"
    if words.removeprefix("docs/") == target:  # the name of a file says little on a site
        words = _titles.get(target, words)
    return f"[{words}]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{section})"


def _titles_in(nav: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in nav:
        for title, inner in entry.items() if isinstance(entry, dict) else ():
            found |= {inner: title} if isinstance(inner, str) else _titles_in(inner)
    return found


def _listed(nav: Any) -> Any:
    """The navigation, with the pages that others stand for. It is made of lists, of dictionaries, and of paths."""
    match nav:
        case list():
            return [_listed(each) for each in nav]
        case dict():
            return {
                title: [entry, *_LISTED[entry]()] if isinstance(entry, str) and entry in _LISTED else _listed(entry)
                for title, entry in nav.items()
            }
    return nav
