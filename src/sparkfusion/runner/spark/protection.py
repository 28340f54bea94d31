"""What Spark's settings ask of connections and of files. Ours are never weaker, unless the user says so."""

from __future__ import annotations

from sparkfusion.config import Settings
from sparkfusion.errors import UserError
from sparkfusion.runner.spark.executor_memory import Conf

_NETWORK = (
    "spark.authenticate",
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)
_FILES = "spark.io.encryption.enabled"


def network_protection(conf: Conf) -> str | None:
    """The setting by which Spark authenticates or encrypts its connections; None if it does neither."""
    return next((name for name in _NETWORK if _is_on(conf, name)), None)


def check_files(conf: Conf, settings: Settings) -> None:
    """Raise an error if Spark encrypts its files and the user has not allowed that ours are plain.

    Every store has such files: also with frames in Spark's shuffle, a task writes its frames and its input to files
    first, and DataFusion spills to files.
    """
    if _is_on(conf, _FILES) and not settings.flag("plain_files"):
        raise UserError(
            f"Spark encrypts the files of its executors ({_FILES}), and sparkfusion does not encrypt its own: frames, "
            "rows that tasks read, and spills",
            hint="if the disks are encrypted, or plain files are allowed there, set sparkfusion.plain_files to true",
        )


def _is_on(conf: Conf, name: str) -> bool:
    return str(conf(name) or "").strip().lower() == "true"
