"""Check the target where tasks run: it answers, versions fit, frames get from task to task, and answers are right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from sparkfusion.cli.doctor.finding import Finding, finding_of
from sparkfusion.cli.spark_masters import open_target
from sparkfusion.config.config_file import current_config_file
from sparkfusion.config.given_settings import read_below_spark

_SETTINGS = {
    "sparkfusion.bytes_per_partition": 1,
    "sparkfusion.task_cores": 1,
    "sparkfusion.small_stage_bytes": 0,
    "sparkfusion.require_distributed": True,
}
_DAEMON_SETTING = "spark.python.daemon.module"
_QUERY = "select k, count(*) as n, sum(v) as s from sparkfusion_doctor group by k order by k"
_KEYS, _PARTS, _ROWS = 7, 4, 700


def check_target(target: str) -> Iterator[Finding]:
    """Run a small query on the target, split into tasks, with the settings of a session there."""
    from sparkfusion.runner.targets import runner_for
    from sparkfusion.session.session import Session, engine_of, spark_of

    subject = f"on {target.partition('?')[0]}"
    with ExitStack() as stack:
        try:
            runner = runner_for(stack.enter_context(open_target(target)))
            below = read_below_spark(current_config_file(), os.environ)
            session = stack.enter_context(Session(runner, _SETTINGS, below))
            yield Finding(subject, "ok", f"it answers; slots: {runner.slots or 'those of this machine'}")
            if engine_of(session).runs_on_spark:
                configuration = spark_of(session).configuration()
                yield from check_spark_configuration(configuration, session.config.ours.integer("task_memory_bytes"))
                yield from check_python_workers(configuration)
            yield _check_answer(subject, session)
        except Exception as error:
            yield finding_of(subject, error)


def check_spark_configuration(configuration: Mapping[str, str], task_memory: int = 0) -> Iterator[Finding]:
    """Whether tasks fit into the memory that Spark gives executors outside of their heap. `task_memory`: the memory
    that the user set for a task, or 0."""
    from sparkfusion.runner.spark.executor_memory import read_memory

    memory = read_memory(configuration.get("spark.master", ""), configuration.get)
    problem = memory.find_problem(task_memory)
    if problem is None:
        yield Finding("executor memory", "ok", "tasks fit into what Spark's settings give them")
        return
    text, _, remedy = problem.partition(". Set ")
    yield Finding("executor memory", "wrong", text, f"set {remedy}" if remedy else None)


def check_python_workers(configuration: Mapping[str, str]) -> Iterator[Finding]:
    """Whether new Python workers are forked from a process that has already imported sparkfusion."""
    if configuration.get(_DAEMON_SETTING) is None:
        remedy = (
            f"set {_DAEMON_SETTING} to sparkfusion.runner.spark.daemon, if sparkfusion is installed on the executors"
        )
        yield Finding("Python workers", "note", "a new one imports for up to a second before its first task", remedy)


def _check_answer(subject: str, session: Any) -> Finding:
    """Whether a query whose tasks exchange rows gives the known answer."""
    values = range(_PARTS * _ROWS)
    parts = [
        [pa.record_batch({"k": [v % _KEYS for v in part], "v": list(part)})]
        for part in (values[start::_PARTS] for start in range(_PARTS))
    ]
    session.register_record_batches("sparkfusion_doctor", parts)
    dataframe = session.sql(_QUERY)
    found = dataframe.to_pylist()
    expected = [{"k": key, "n": len(values[key::_KEYS]), "s": sum(values[key::_KEYS])} for key in range(_KEYS)]
    if found != expected:
        return Finding(subject, "wrong", f"the answer {found} is wrong", "report this: it is a defect of sparkfusion")
    return Finding(
        subject, "ok", f"a query in tasks gives the right answer: {dataframe.explain_text().splitlines()[0]}"
    )
