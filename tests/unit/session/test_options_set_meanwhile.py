"""An option that one thread sets while another one reads all options is not lost."""

from __future__ import annotations

import pytest

import sparkfusion
from sparkfusion.session.session_settings import SessionSettings

BATCH_SIZE = "datafusion.execution.batch_size"


def test_an_option_set_while_options_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read, values = SessionSettings._datafusion_rows, ["7"]

    def read_and_set(self: SessionSettings) -> list[dict[str, str | None]]:
        rows = read(self)
        if values:
            session.sql(f"set {BATCH_SIZE} = {values.pop()}")  # of another thread, say
        return rows

    with sparkfusion.connect(config={BATCH_SIZE: 100}) as session:
        monkeypatch.setattr(SessionSettings, "_datafusion_rows", read_and_set)
        assert session.config.datafusion_options()[BATCH_SIZE] == "100"
        assert session.config.datafusion_options()[BATCH_SIZE] == "7"
