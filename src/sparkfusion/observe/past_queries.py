"""Past queries, from their event logs."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.observe.log_lines import LOG_VERSION
from sparkfusion.observe.query_model import LogLine, build_model

HISTORY_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("started_at", pa.timestamp("us", tz="UTC")),
        ("status", pa.string()),
        ("seconds", pa.float64()),
        ("rows", pa.int64()),
        ("stages", pa.int32()),
        ("tasks", pa.int32()),
        ("failed_attempts", pa.int32()),
        ("reason", pa.string()),
        ("error", pa.string()),
        ("text", pa.string()),
        ("file", pa.string()),
    ]
)


def history(directory: str | PathLike[str]) -> pa.Table:
    """The queries whose event logs are in a directory (`sparkfusion.event_log`), a row for each, the oldest first.

    `status` is "running" for a query whose log has no end: it still runs, or its program ended suddenly. It is
    "unreadable" for a file that is not such a log; `error` says why. `reason` says why a query was not distributed.
    `sparkfusion explain --from-log FILE` shows a query.
    """
    home = Path(directory)
    if not home.is_dir():
        raise UserError(f"there is no directory {str(home)!r}", hint="name the directory of sparkfusion.event_log")
    rows = [_summarize(file) for file in sorted(home.glob("*.jsonl"))]
    return pa.Table.from_pylist(rows, schema=HISTORY_SCHEMA)


def read_model(file: str | PathLike[str]) -> dict[str, Any]:
    """The model of the query in an event log. Raises a `UserError` if the file is not an event log, or is of a newer
    version."""
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # the last line is complete if a line end follows
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the event log {str(path)!r}: {error}") from error
    parsed = [_parse(text, path, number) for number, text in enumerate(lines, 1)]
    if not parsed or parsed[0].get("event") != "query_planned":
        raise UserError(f"{str(path)!r} is not an event log of sparkfusion: it does not begin with query_planned")
    version = parsed[0].get("version")
    if version != LOG_VERSION:
        hint = "read it with the sparkfusion that wrote it, or a newer one"
        raise UserError(f"the event log {str(path)!r} has version {version}, and this is {LOG_VERSION}", hint=hint)
    try:
        return build_model(parsed)
    except (KeyError, TypeError) as error:
        raise UserError(f"the event log {str(path)!r} is damaged: {error!r}") from error


def _parse(text: str, path: Path, number: int) -> LogLine:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise UserError(f"line {number} of the event log {str(path)!r} is not JSON: {error}") from error
    if not isinstance(line, dict) or "event" not in line:
        raise UserError(f"line {number} of {str(path)!r} is not an event")
    return line


def _summarize(file: Path) -> dict[str, Any]:
    try:
        model = read_model(file)
    except UserError as error:
        return {"status": "unreadable", "error": error.message, "file": str(file)}
    query, attempts = model["query"], model.get("attempts", [])
    return {
        "query": query["id"],
        "started_at": int(query["started_at"] * 1e6),
        "status": query["status"],
        "seconds": query.get("seconds"),
        "rows": query.get("rows"),
        "stages": len(model.get("stages", [])),
        "tasks": len({(each["run"], each["stage"], each["task"]) for each in attempts if each["stage"]}),
        "failed_attempts": sum(each["outcome"] in ("retried", "failed") for each in attempts)
        + sum(each.get("earlier_attempts", 0) for each in attempts),
        "reason": model.get("reason"),
        "error": query.get("error"),
        "text": query["text"],
        "file": str(file),
    }
