"""The files that others join the project by: they are there, and name only what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
YAML = [ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md"))]
_TARGET = re.compile(r"(?:`|^\$ )make ([a-z][a-z-]*)", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)[^)]*\)")


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_files_are_valid(path: Path) -> None:
    assert yaml.safe_load(path.read_text())


def test_the_workflow_runs_what_the_readme_says_on_every_supported_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    ran = {step["run"].split()[1] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert {"test", "test-long", "release-check"} == ran <= targets()
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert jobs["test"]["strategy"]["matrix"]["python"] == classifiers


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_name_targets_and_files_that_exist(path: Path) -> None:
    text = path.read_text()
    assert set(_TARGET.findall(text)) <= targets()
    assert [link for link in _LINK.findall(text) if not (path.parent / link).exists()] == []


def locked_versions() -> dict[str, list[Version]]:
    """The versions in the lock file by package; some have one for each kind of Python or system."""
    found: dict[str, list[Version]] = {}
    for line in (ROOT / "requirements-dev.lock").read_text().splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, version = line.partition(";")[0].partition("==")
            found.setdefault(canonicalize_name(name), []).append(Version(version.strip()))
    return found


def test_the_lock_file_has_what_pyproject_allows_and_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [Requirement(text) for text in (*project["dependencies"], *extras["cli"], *extras["dev"])]
    locked = locked_versions()
    wrong = [
        f"{each}: the lock file has {locked.get(canonicalize_name(each.name), 'none')}; run `make lock`"
        for each in asked
        if not (versions := locked.get(canonicalize_name(each.name)))
        or not all(each.specifier.contains(version) for version in versions)
    ]
    assert wrong == []
    assert len(locked) > len(asked)  # with what these need themselves


def test_the_lock_file_names_no_machine_and_no_index() -> None:
    text = (ROOT / "requirements-dev.lock").read_text()
    assert [line for line in text.splitlines() if "://" in line or "@" in line or line.startswith("-")] == []


def test_the_extra_of_the_benchmark_is_what_development_has() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["bench"]) <= set(extras["dev"])


@pytest.mark.parametrize("template", ["bug.yml", "feature.yml"])
def test_templates_ask_questions(template: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / template).read_text())
    assert {"name", "description", "body"} <= set(form)
    assert [field["attributes"]["label"] for field in form["body"]]
    assert any(field.get("validations", {}).get("required") for field in form["body"])
