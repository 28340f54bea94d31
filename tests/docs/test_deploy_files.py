"""The files of `deploy/`: the manifests are what Kubernetes accepts, and the Dockerfile keeps to a few rules.

Neither a Kubernetes cluster nor a Docker daemon is needed, so nothing here shows that the image builds or runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sparkfusion.runner.spark.executor_memory import read_memory
from sparkfusion.runner.spark.protection import network_protection

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = "1.33"
Manifest = dict[str, Any]


def manifests() -> Iterator[Manifest]:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def found(kind: str, name: str) -> Manifest:
    (one,) = [each for each in manifests() if each["kind"] == kind and each["metadata"]["name"] == name]
    return one


def conf() -> dict[str, str]:
    lines = found("ConfigMap", "sparkfusion-spark")["data"]["spark-defaults.conf"].splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def pods() -> list[Manifest]:
    """The pod of the driver, and the template for those of executors."""
    template = yaml.safe_load(found("ConfigMap", "sparkfusion-spark")["data"]["executor.yaml"])
    return [found("Job", "sparkfusion-driver")["spec"]["template"]["spec"], template["spec"]]


@pytest.mark.parametrize("manifest", list(manifests()), ids=lambda it: f"{it['kind']} {it['metadata']['name']}")
def test_a_manifest_is_valid(manifest: Manifest) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_the_template_of_executors_is_valid() -> None:
    template = yaml.safe_load(found("ConfigMap", "sparkfusion-spark")["data"]["executor.yaml"])
    kubernetes_validate.validate(template, KUBERNETES, strict=True)


def test_a_wrong_manifest_is_found() -> None:
    service = found("Service", "sparkfusion-driver")
    service["spec"]["ports"][0]["port"] = "driver"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, KUBERNETES, strict=True)


def test_what_manifests_refer_to_is_there() -> None:
    driver = pods()[0]
    for volume in driver["volumes"]:
        found("ConfigMap", volume["configMap"]["name"])
    found("ServiceAccount", driver["serviceAccountName"])
    (container,) = driver["containers"]
    assert container["image"] == conf()["spark.kubernetes.container.image"]
    assert conf()["spark.kubernetes.authenticate.serviceAccountName"] == driver["serviceAccountName"]
    mounted = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    template = Path(conf()["spark.kubernetes.executor.podTemplateFile"])
    assert mounted[str(template.parent)] == "spark"
    assert template.name in found("ConfigMap", "sparkfusion-spark")["data"]
    assert Path(container["command"][-1]).name in found("ConfigMap", "sparkfusion-program")["data"]


def test_the_service_has_every_port_of_the_driver() -> None:
    service = found("Service", "sparkfusion-driver")
    assert service["metadata"]["name"] == conf()["spark.driver.host"]
    assert service["spec"]["selector"] == found("Job", "sparkfusion-driver")["spec"]["template"]["metadata"]["labels"]
    program = found("ConfigMap", "sparkfusion-program")["data"]["query.py"]
    compile(program, "query.py", "exec")
    feed = re.search(r'"sparkfusion\.feed_port": (\d+)', program)
    assert feed is not None
    wanted = {int(conf()["spark.driver.port"]), int(conf()["spark.driver.blockManager.port"]), int(feed[1])}
    assert {each["port"] for each in service["spec"]["ports"]} == wanted


def test_no_container_runs_as_root() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_tasks_fit_into_the_memory_of_executors_and_the_network_is_protected() -> None:
    assert read_memory(conf()["spark.master"], conf().get).find_problem(0) is None
    assert network_protection(conf().get) is not None


def steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile and their arguments, continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_every_image_that_the_dockerfile_starts_from_has_a_version() -> None:
    bases = [argument.split()[0] for name, argument in steps() if name == "FROM"]
    assert len(bases) == 3
    for base in bases:
        assert re.fullmatch(r"[a-z/]+:\d+\.\d+\.\d+[a-z0-9.-]*", base), base
    assert bases[1] == bases[2], "the environment is copied to the Python that made it"


def test_the_image_does_not_run_as_root() -> None:
    users = [argument for name, argument in steps() if name == "USER"]
    assert users == ["185:185"]
    assert steps()[-1][0] == "ENTRYPOINT"
    assert all(str(pod["securityContext"]["runAsUser"]) == "185" for pod in pods())


def test_what_the_dockerfile_copies_is_there() -> None:
    stages = [argument.split(" AS ")[1] for name, argument in steps() if " AS " in argument]
    for name, argument in steps():
        assert name != "ADD"
        if name != "COPY":
            continue
        first, *rest = shlex.split(argument)
        if first.startswith("--from="):
            assert first.removeprefix("--from=") in stages
        else:
            assert all((ROOT / source).exists() for source in [first, *rest[:-1]])


def test_the_image_has_the_extras_of_this_package() -> None:
    installed = " ".join(argument for name, argument in steps() if name == "RUN")
    project = (ROOT / "pyproject.toml").read_text()
    assert "--no-cache-dir" in installed
    assert "'.[dialect,tls]'" in installed
    assert all(f"\n{extra} = [" in project for extra in ("dialect", "tls"))
    assert re.search(r"'(pandas[^']+)'", installed)[1] in project  # type: ignore[index]
