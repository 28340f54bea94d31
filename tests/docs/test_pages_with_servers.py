"""Pages whose snippets need a server: the tutorial with its workers, and object stores with a bucket."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT, run_snippets
from tests.docs.test_flight_page import _WORKER, exported_token, running
from tests.suites.fake_s3 import KEY, SECRET, fake_s3


@pytest.mark.long
def test_the_tutorial_goes_from_one_file_to_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "tutorial.md"
    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARKFUSION_TOKEN", exported_token(text))
    with ExitStack() as stack:
        for command, port in _WORKER.findall(text):
            says = stack.enter_context(running(command.replace(f"--port {port}", "--port 0"), tmp_path))
            (free,) = re.findall(r"127\.0\.0\.1:(\d+)", says)
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        printed = run_snippets(page, text=text)
    for words in (
        "not distributed: ",
        "Stage 2 ── 2 tasks ── gather",
        "Stage 1 ── 2 tasks ── shuffle by [customer] into 2",
        "on 2 workers with",
    ):
        assert words in printed
    assert (tmp_path / "plan.html").exists()


def test_the_snippets_about_object_stores_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "object-stores.md"
    with fake_s3() as bucket:
        text = page.read_text().replace("127.0.0.1:9000", bucket.address)
        printed = run_snippets(page, text=text.replace('"KEY"', f'"{KEY}"').replace('"SECRET"', f'"{SECRET}"'))
        assert [name for name in bucket.names() if name.startswith("bucket/orders/")]
    assert "| Oslo | 4.0   |" in printed
    assert "no object store is registered for s3://other/orders/" in printed
