"""The run itself: each query, each round, all engines in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from benchmarks.all.engines import BASE, Engine, processes_of
from benchmarks.all.memory import is_memory_short
from benchmarks.all.process import EngineProcess, NotAnsweredError
from benchmarks.all.result import Measured, SuiteResult
from sparkfusion.bench.referee import Referee, Ruling

Say = Callable[[str], None]
_WARM_UP = "select count(*) from {table}"
_WORTH_ENDING = 500_000_000
"""Bytes. To end a smaller process frees too little."""


class SuiteRun:
    """One suite at one scale. What was measured is in `result` at any time, also if the run is interrupted."""

    def __init__(
        self,
        result: SuiteResult,
        data: Path,
        engines: Sequence[Engine],
        processes: dict[str, EngineProcess],
        say: Say,
        is_short: Callable[[], bool] = is_memory_short,
    ) -> None:
        self.result = result
        self._engines = engines
        self._processes = processes
        self._say = say
        self._is_short = is_short
        tables = {path.name: path for path in sorted(data.iterdir()) if path.is_dir()}
        self._smallest = min(tables, key=lambda name: sum(file.stat().st_size for file in tables[name].iterdir()))
        self._referee = Referee(tables)

    def start(self, seconds: float) -> None:
        """Start every engine."""
        for engine in self._engines:
            try:
                self._warm_up(engine, seconds)
                self._say(f"{engine.name} is ready\n")
            except NotAnsweredError as error:
                self._say(f"{engine.name} failed: {error}\n")

    def _warm_up(self, engine: Engine, seconds: float) -> None:
        """Let it count the rows of a small table, so that all of its processes are there."""
        self._processes[engine.process].ask(engine.name, _WARM_UP.format(table=self._smallest), seconds)

    def _make_room(self) -> None:
        """End engines that hold much while others need memory. They start again when they are asked.

        A JVM keeps what an earlier query needed, and allocators keep some. All engines together may hold more than the
        machine has.
        """
        while self._is_short():
            name, largest = max(self._processes.items(), key=lambda pair: pair[1].resident_bytes)
            held = largest.resident_bytes
            if held < _WORTH_ENDING:
                return  # others need the memory
            self._say(f"memory is short: {name} is ended, which holds {held / 1e9:.1f} GB\n")
            self.result.restarts.append(name)
            largest.end()

    def measure(self, query: int, sql: str, rounds: int, seconds: float) -> None:
        """One query, on all engines in turn, so many times. An engine that did not answer is not asked again."""
        self._make_room()
        self.result.asked.append(query)
        measured = {engine.name: Measured(query, engine.name) for engine in self._engines}
        self.result.measured += measured.values()
        reference: pa.Table | None = None
        for number in range(rounds):
            self._say(f"{self.result.name} q{query} round {number + 1}:")
            for engine in self._engines:
                found = measured[engine.name]
                if found.error is not None:
                    continue
                answer = self._ask(engine, found, sql, seconds)
                if engine.name == BASE and number == 0:
                    reference = answer
                if answer is not None:
                    self._compare(engine, found, sql, reference, answer)
                self._say(f"  {engine.name} {_shown(found)}")
            self._say("\n")

    def _ask(self, engine: Engine, found: Measured, sql: str, seconds: float) -> pa.Table | None:
        process = self._processes[engine.process]
        try:
            if process.start():
                self._warm_up(engine, seconds)
            answer = process.ask(engine.name, sql, seconds)
        except NotAnsweredError as error:
            found.error = str(error)
            return None
        finally:
            found.peak_bytes = max(found.peak_bytes, process.peak_bytes)
        found.seconds.append(answer["seconds"])
        if answer["shuffled_bytes"] is not None:
            found.shuffled_bytes = answer["shuffled_bytes"]
        with pa.OSFile(str(process.answer_path)) as file, pa.ipc.open_file(file) as reader:
            return reader.read_all()

    def _compare(self, engine: Engine, found: Measured, sql: str, reference: pa.Table | None, answer: pa.Table) -> None:
        """Every round counts: an answer that differs once is different."""
        if found.equal is False:
            return
        if reference is None:
            ruling = Ruling(None, "DataFusion did not answer")
        else:
            ruling = rule(self._referee, engine, sql, reference, answer)
        found.equal, found.note = ruling.equal, ruling.note


def rule(referee: Referee, engine: Engine, sql: str, reference: pa.Table, answer: pa.Table) -> Ruling:
    """Whether an engine gave the right answer, by the rules for engines of its kind."""
    if engine.ours:
        return referee.rule_own(sql, reference, answer)
    return referee.rule_other(sql, reference, answer, engine.nulls)


def _shown(found: Measured) -> str:
    if found.error is not None:
        return "FAILED"
    return f"{found.seconds[-1]:.2f}" + {True: "", None: "?", False: " DIFFERENT"}[found.equal]


@contextmanager
def engine_processes(
    engines: Sequence[Engine], data: Path, home: Path, pythons: dict[str, Path]
) -> Iterator[dict[str, EngineProcess]]:
    """A process for each group of engines. They start when they are asked, and all of them end with the `with`."""
    processes = {name: EngineProcess(name, data, home / name, pythons.get(name)) for name in processes_of(engines)}
    try:
        yield processes
    finally:
        with ThreadPoolExecutor(len(processes)) as pool:  # each may take a while
            list(pool.map(EngineProcess.end, processes.values()))
