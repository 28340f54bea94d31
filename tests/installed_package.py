"""A package as an installer leaves it, for processes that have its directory on their path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

EntryPoints = Mapping[str, Mapping[str, str]]
"""Names and objects by group, as in `project.entry-points` of a pyproject.toml."""


def install(site: Path, name: str, source: str, entry_points: EntryPoints) -> Path:
    """Put a package of one module into a directory, which is returned."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = [line for group, found in entry_points.items() for line in (f"[{group}]", *_lines(found))]
    files = {
        site / f"{name}.py": source,
        info / "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        info / "entry_points.txt": "\n".join(lines),
    }
    for file, text in files.items():
        file.write_text(text)
    (info / "RECORD").write_text("".join(f"{file.relative_to(site)},,\n" for file in (*files, info / "RECORD")))
    return site


def _lines(found: Mapping[str, str]) -> list[str]:
    return [f"{name} = {reference}" for name, reference in found.items()]
