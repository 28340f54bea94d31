"""The session that most tests of feeds use."""

from __future__ import annotations

import pytest

from sparkfusion import Session
from tests.conftest import Connect


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect({"datafusion.execution.target_partitions": 3, "sparkfusion.slots": 4})
