"""What a process does before its first session uses DataFusion."""

from __future__ import annotations

from sparkfusion.plan.wire.check import check_wire_format
from sparkfusion.session.logs import quiet_datafusion
from sparkfusion.session.stacks import has_roomy_stacks


def prepare_datafusion() -> None:
    """Idempotent. The stacks come before everything that starts DataFusion's threads."""
    quiet_datafusion()
    has_roomy_stacks()
    check_wire_format()
