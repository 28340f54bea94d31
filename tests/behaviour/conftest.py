"""The session that most behaviour tests use."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion import Session
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.conftest import Connect


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    """A session over the table `t` of `parts`, small as it is, that distributes every query."""
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    return session
