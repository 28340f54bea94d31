"""The model of a query: its plan and its run, as JSON. `explain`, the HTML page and the event log share it.
docs/explain.md describes its keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

LogLine = Mapping[str, Any]
"""A line of an event log."""

MODEL_VERSION = 1
_OUTCOMES = {"query_finished": "finished", "query_failed": "failed"}
_DECISIONS = {"join_decided": "join", "key_set_decided": "key set", "skew_decided": "skew", "stage_skipped": "skipped"}
_OF_A_RUN = ("metrics", "feeds")
Attempt = dict[str, Any]


def build_model(lines: Iterable[LogLine]) -> dict[str, Any]:
    """The model of a query from the lines of its event log, in their order. Lines of unknown kinds change nothing."""
    model = _Model()
    for line in lines:
        model.add(line)
    return model.result()


class _Model:
    def __init__(self) -> None:
        self._query: dict[str, Any] = {"id": "", "text": "", "status": "planned"}
        self._shown: dict[str, Any] = {}
        self._attempts: dict[tuple[int, int, int, int], Attempt] = {}
        self._decided: list[dict[str, Any]] = []
        self._runs = 1

    def add(self, line: LogLine) -> None:
        event = line["event"]
        if event == "query_planned":
            self._plan(line)
        elif event == "query_restarted":
            self._restart(line)
        elif event == "task_started":
            attempt = self._attempt(line)
            attempt |= {"ordered_at": line["at"], "outcome": "ordered"}
        elif event == "task_running":
            attempt = self._attempt(line)
            attempt |= {"worker": line["worker"], "started_at": line["at"], "outcome": "running"}
        elif event in ("task_finished", "task_failed"):
            self._end_attempt(line)
        elif event in _DECISIONS:
            self._decide(line, _DECISIONS[event])
        elif event in _OUTCOMES:
            self._end(line)

    def result(self) -> dict[str, Any]:
        ran = self._query["status"] != "planned"
        told = {"attempts": list(self._attempts.values()), "decided": self._decided} if ran else {}
        return {"version": MODEL_VERSION, "query": self._query, **self._shown, **told}

    def _plan(self, line: LogLine) -> None:
        self._query |= {"id": line["query"], "text": line["text"]}
        if line.get("started"):
            begin = line["at"] - line["seconds"]
            self._query |= {"status": "running", "started_at": begin, "planning_seconds": line["seconds"]}
        plan = line.get("plan")
        if plan is not None:
            self._shown = {"distributed": True, **plan}
        else:
            self._shown = {"distributed": False, "reason": line["reason"], "plan": line.get("single_node", [])}
        self._shown |= {name: line[name] for name in ("tables", "place") if line.get(name)}

    def _restart(self, line: LogLine) -> None:
        self._give_up(line["at"])
        self._runs += 1
        self._decide(line, "restarted")
        if line.get("plan") is not None:
            self._shown |= line["plan"]

    def _decide(self, line: LogLine, kind: str) -> None:
        self._decided.append({"at": line["at"], "kind": kind, "stage": line.get("stage"), "reason": line["reason"]})

    def _end_attempt(self, line: LogLine) -> None:
        attempt = self._attempt(line)
        attempt |= {"worker": line["worker"], "started_at": line["started_at"]}
        if line["event"] == "task_failed":
            outcome = "retried" if line["retried"] else "failed"
            attempt |= {"outcome": outcome, "ended_at": line["at"], "message": line["message"]}
            return
        attempt |= {name: line[name] for name in ("rows", "bytes", "earlier_attempts")}
        attempt |= {"outcome": "finished", "ended_at": line["started_at"] + line["seconds"]}

    def _end(self, line: LogLine) -> None:
        status = "cancelled" if line.get("cancelled") else _OUTCOMES[line["event"]]
        begin = self._query.get("started_at", line["at"])
        self._query |= {"status": status, "ended_at": line["at"], "seconds": line["at"] - begin}
        self._query |= {name: line[name] for name in ("rows",) if name in line}
        self._query |= {"error": line["message"]} if "message" in line else {}
        self._give_up(line["at"])
        self._shown |= line["plan"] if line.get("plan") is not None else {}
        self._shown |= {name: line[name] for name in _OF_A_RUN if line.get(name)}

    def _attempt(self, line: LogLine) -> Attempt:
        made = {name: line[name] for name in ("stage", "task", "attempt")} | {"run": self._runs}
        return self._attempts.setdefault(self._key(line), made)

    def _give_up(self, at: float) -> None:
        """End the attempts without an event for their end. If another attempt at the task was ordered, they ended at
        that time."""
        for attempt in self._attempts.values():
            if attempt["outcome"] in ("ordered", "running"):
                later = self._attempts.get(self._key({**attempt, "attempt": attempt["attempt"] + 1}, attempt["run"]))
                ended = later.get("ordered_at", at) if later is not None else at
                attempt |= {"outcome": "given up" if later is not None else "stopped", "ended_at": ended}

    def _key(self, line: LogLine, run: int | None = None) -> tuple[int, int, int, int]:
        return (self._runs if run is None else run, line["stage"], line["task"], line["attempt"])
