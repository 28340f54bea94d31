"""`sparkfusion doctor`: find problems of this installation or of a cluster, with their remedies."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sparkfusion.cli.doctor.finding import Finding
from sparkfusion.cli.ending import WRONG

_COLOURS = {"ok": "green", "note": None, "warning": "yellow", "wrong": "red"}


@click.command()
@click.option(
    "--on",
    "target",
    metavar="TARGET",
    help="Also check where tasks run: local, spark, a master of Spark such as spark://host:7077 or yarn, a Spark "
    "Connect server sc://host:15002, or workers flight://host:port,host:port.  [default: what sparkfusion.toml says]",
)
def doctor(target: str | None) -> None:
    """Find out what is wrong with this installation, its settings or a cluster.

    For each problem it says what to do. Exits with 1 if something is wrong.

    \b
    Examples:
      sparkfusion doctor
      sparkfusion doctor --on spark
      sparkfusion doctor --on flight://host:7070,other:7070
    """
    states = []
    for finding in _examine(target):
        states.append(finding.state)
        click.echo(
            click.style(f"{finding.state:<8}", fg=_COLOURS[finding.state]) + f" {finding.subject}: {finding.text}"
        )
        if finding.remedy is not None:
            click.echo(f"         → {finding.remedy}")
    click.get_current_context().exit(WRONG if "wrong" in states else 0)


def _examine(target: str | None) -> Iterator[Finding]:
    from sparkfusion.cli.doctor import this_machine
    from sparkfusion.cli.doctor.on_target import check_target
    from sparkfusion.config import Settings

    yield from this_machine.check_python()
    yield from this_machine.check_packages()
    yield from this_machine.check_settings()
    settings = this_machine.local_settings()
    if settings is None:  # an earlier check reports wrong settings
        yield Finding("settings", "note", "they are wrong, so what follows was checked with the defaults")
        settings = Settings()
    yield from this_machine.check_memory(settings)
    yield from this_machine.check_directories(settings)
    yield from this_machine.check_ports(settings)
    yield from this_machine.check_spark_package()
    yield from this_machine.check_java()
    target = target or this_machine.target_of_file()
    if target is not None:
        yield from check_target(target)
