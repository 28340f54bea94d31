"""Reproducers: everything that is needed to examine a failure later, in one directory."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyarrow as pa

from sparkfusion.verify.result import VerifyResult
from sparkfusion.verify.subject import VerifiableDataFrame, VerifiableSession

_SECRET = re.compile(r"secret|password|token|credential|access_key|private", re.IGNORECASE)
_PACKAGES = ("sparkfusion", "datafusion", "pyarrow", "pyspark")


def write_reproducer(
    directory: Path, session: VerifiableSession, dataframe: VerifiableDataFrame, result: VerifyResult
) -> Path:
    """Write a new directory below `directory`, readable by its owner only, and return it.

    It holds `query.sql`, `stages.json`, `explain.txt`, `config.json`, `comparison.txt` and each leg's answer as an
    Arrow IPC file. If explain fails, its error is written instead, so that the reproducer is complete.
    """
    directory.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f"{_slug(result)}-", dir=directory))
    (made / "query.sql").write_text(result.query + "\n")
    graph = None if result.graph is None else result.graph.to_json()
    (made / "stages.json").write_text(json.dumps(graph, indent=2) + "\n")
    (made / "explain.txt").write_text(_explain(dataframe) + "\n")
    (made / "config.json").write_text(json.dumps(_environment(session), indent=2, sort_keys=True) + "\n")
    (made / "comparison.txt").write_text(result.describe() + "\n")
    for leg in result.legs:
        if leg.table is not None:
            write_answer(made / f"{leg.name.replace(' ', '_')}.arrow", leg.table)
    return made


def write_answer(path: Path, table: pa.Table) -> None:
    """An answer as an Arrow IPC file: types, and the row count of a table without columns, are kept."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _slug(result: VerifyResult) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", (result.name or "query").lower()).strip("-")[:40]
    digest = hashlib.sha256(result.query.encode()).hexdigest()[:8]
    return f"{words or 'query'}-{digest}"


def _explain(dataframe: VerifiableDataFrame) -> str:
    try:
        return dataframe.explain_text()
    except Exception as error:
        return f"explain failed: {error}"


def _environment(session: VerifiableSession) -> dict[str, object]:
    settings = {name: "***" if _SECRET.search(name) else value for name, value in session.config.items()}
    return {"settings": settings, "versions": _versions(), "python": platform.python_version()}


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
