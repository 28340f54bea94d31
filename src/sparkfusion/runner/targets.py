"""Find the runner for the target that a user connects to."""

from __future__ import annotations

import importlib.util

from sparkfusion.errors import UserError
from sparkfusion.runner.base import Runner
from sparkfusion.runner.local import LocalRunner
from sparkfusion.transport.membership import Cluster, cluster_of
from sparkfusion.transport.schemes import is_known, known_schemes, scheme_of


def runner_for(target: object) -> Runner:
    """None or "local": this process. "spark": a local Spark session. A SparkSession, classic or of Spark Connect: that
    session. Addresses such as "flight://host:port,host:port", a `Cluster`, or a function that returns addresses: those
    workers."""
    if target is None or target == "local":
        return LocalRunner()
    if target == "spark" or type(target).__module__.split(".")[0] == "pyspark":
        return _spark_runner(target)
    if isinstance(target, str) and "://" in target and is_known(scheme_of(target)):
        return _cluster_runner(cluster_of(target))
    if isinstance(target, Cluster):
        return _cluster_runner(target)
    if callable(target):
        return _cluster_runner(Cluster(target))
    raise UserError(
        f"cannot connect to {_show_target(target)}",
        hint='connect() runs queries in this process; connect("spark") or connect(spark_session) on Spark; '
        f'connect("flight://host:port") on workers (schemes: {", ".join(known_schemes())})',
    )


def _show_target(target: object) -> str:
    """The target for an error message, without the part after `?`, which may be a token."""
    text = repr(target)
    place, mark, _ = text.partition("?")
    return f"{place}?…{text[-1]}" if mark else text


def _cluster_runner(cluster: Cluster) -> Runner:
    from sparkfusion.runner.cluster import ClusterRunner

    return ClusterRunner(cluster)


def require_spark() -> None:
    """Raises a `UserError` if PySpark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise UserError("pyspark is not installed", hint="pip install 'sparkfusion[spark]'")


def _spark_runner(target: object) -> Runner:
    require_spark()
    if ".connect." in type(target).__module__:
        from sparkfusion.runner.spark.connect.connect_runner import ConnectRunner

        return ConnectRunner(target)
    from sparkfusion.runner.spark.classic_parts import require_classic_parts

    require_classic_parts()
    from sparkfusion.runner.spark.launch import local_session
    from sparkfusion.runner.spark.runner import SparkRunner

    if target != "spark":
        return SparkRunner(target)
    session, owned = local_session()
    return SparkRunner(session, owned=owned)
