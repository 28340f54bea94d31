"""`docs/observability.md` names every event, every field, every metric and every attribute of progress."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from sparkfusion.observe import events
from sparkfusion.observe.events import Event
from sparkfusion.observe.progress import ProgressState
from sparkfusion.observe.prometheus import worker_families
from sparkfusion.observe.stage_progress import StageProgress
from tests.docs.snippets import ROOT
from tests.unit.observe.test_prometheus import METRICS

TEXT = (ROOT / "docs" / "observability.md").read_text()
KINDS = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, Event)]
_ROW = re.compile(r"^\| `(\w+)` \| .*? \| (.*) \|$", re.MULTILINE)
_INNER = {
    "busy_since", "ended_at", "fail_task", "feeds", "feeds_of", "finish", "finish_task", "finished_tasks", "fraction",
    "input_bytes", "planned_stages", "planned_tasks", "run_task", "running_tasks", "skip", "start", "started_at",
    "work",
}  # fmt: skip


def words_of(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)", text))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Event], ids=lambda kind: kind.__name__)
def test_an_event_is_listed_with_its_fields(kind: type[Event]) -> None:
    rows = dict(_ROW.findall(TEXT))
    own = {each.name for each in fields(kind)} - {"query", "at"}
    assert own == words_of(rows[kind.__name__]), "the row of the event"


def test_no_event_is_listed_that_does_not_exist() -> None:
    listed = [name for name, _ in _ROW.findall(TEXT.split("## Event logs")[0]) if name[0].isupper()]
    assert sorted(listed) == sorted(kind.__name__ for kind in KINDS if kind is not Event)


def test_every_metric_of_a_worker_is_listed() -> None:
    section = TEXT.split("## Prometheus")[1]
    names = {family.name.removeprefix("sparkfusion_worker_") for family in worker_families(METRICS, now=0.0)}
    assert names <= words_of(section)


@pytest.mark.parametrize("shown", [ProgressState, StageProgress])
def test_what_progress_tells_is_listed(shown: type) -> None:
    public = {name for name in dir(shown) if not name.startswith("_")} | {each.name for each in fields(shown)}
    assert public - _INNER <= words_of(TEXT.split("## Events")[0])
