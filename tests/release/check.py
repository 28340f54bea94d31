"""Build the packages, install the wheel into an empty environment, and run the README there: `make release-check`.

The source tree hides what a package lacks: files that were not packed, dependencies that only the tests bring.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (sparkfusion .*)$", re.MULTILINE)
_SCALE = 0.1


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory(prefix="release-check-") as directory:
        home = Path(directory)
        wheel = build(home / "dist", str(project["version"]))
        environment = install(wheel, home / "environment")
        run_first_minutes(environment, home / "new")
    print(f"sparkfusion {project['version']} can be released")


def build(directory: Path, version: str) -> Path:
    """Build the sdist, and from it the wheel. Both have what they need, and nothing of the tests is in the wheel."""
    _say("build")
    _run([sys.executable, "-m", "build", "--outdir", str(directory), str(ROOT)])
    (sdist,) = directory.glob("*.tar.gz")
    (wheel,) = directory.glob("*.whl")
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    _expect({"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/sparkfusion/py.typed"} <= names, sdist.name)
    with zipfile.ZipFile(wheel) as packed_wheel:
        files = packed_wheel.namelist()
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "sparkfusion").rglob("*.py")}
    _expect(sources <= set(files), f"{wheel.name} lacks {sorted(sources - set(files))}")
    strays = [name for name in files if not name.startswith(("sparkfusion/", f"sparkfusion-{version}.dist-info/"))]
    _expect(not strays, f"{wheel.name} has {strays}")
    return wheel


def install(wheel: Path, directory: Path) -> Path:
    """An environment with the wheel, the extras that the README's first minutes need, and nothing else."""
    _say("install")
    venv.create(directory, with_pip=True)
    _run([str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", f"{wheel}[cli,dialect]"])
    return directory / "bin"


def run_first_minutes(environment: Path, directory: Path) -> None:
    """The README's snippets and commands, in an empty directory."""
    directory.mkdir()
    _say("first five minutes")
    generate = f"from sparkfusion.bench.tpc import TPCH; TPCH.generate('data', {_SCALE})"
    _run([sys.executable, "-c", generate], directory, PYTHONPATH=str(ROOT))
    readme = (ROOT / "README.md").read_text()
    chapter = readme.partition("## First five minutes")[2].partition("\n## ")[0]
    snippets = _SNIPPET.findall(chapter)
    _expect(len(snippets) > 3, "the README has no snippets under 'First five minutes'")
    (directory / "snippets.py").write_text("\n".join(snippets))
    _run([str(environment / "python"), "snippets.py"], directory)
    for command in _COMMAND.findall(chapter):
        _run(["bash", "-c", str(command)], directory, PATH=f"{environment}:{os.environ['PATH']}")


def _say(step: str) -> None:
    print(f"== {step}", flush=True)


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"not ready for a release: {what}")


def _run(command: list[str], directory: Path | None = None, **variables: str) -> None:
    """Run a command; the shell of sparkfusion reads a statement from standard input."""
    environment = {**os.environ, **variables}
    ended = subprocess.run(command, cwd=directory, env=environment, check=False, text=True, input="select 1;\n")
    _expect(ended.returncode == 0, f"{' '.join(command)} ended with {ended.returncode}")


if __name__ == "__main__":
    main()
