"""Which exchange store a query on Spark uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sparkfusion.config import Settings
from sparkfusion.errors import UserError
from sparkfusion.runner.spark.master import is_local
from sparkfusion.urls import is_url, show_url

if TYPE_CHECKING:
    from pyspark import SparkContext

StoreKind = Literal["local", "shared", "spark"]


@dataclass(frozen=True)
class StoreChoice:
    """The store, and the directory or URL the user gave for it."""

    kind: StoreKind
    directory: str

    def __str__(self) -> str:
        if self.kind == "spark":
            return "frames in Spark's shuffle"
        where = show_url(self.directory) if self.directory else "memory, then on this machine's disk"
        return f"frames in {where}" + (", shared by all executors" if self.kind == "shared" else "")


def check_local(wanted: str, directory: str) -> None:
    """Raise an error if frames are to be kept on this machine, but at a URL."""
    if wanted == "local" and is_url(directory):
        raise UserError(
            f"sparkfusion.store is local, but sparkfusion.store_dir is the URL {show_url(directory)}",
            hint="set sparkfusion.store to shared",
        )


def choose_store(settings: Settings, spark: SparkContext) -> StoreChoice:
    """The store that the user set, otherwise the one that fits the master. Raises if the two do not work together."""
    wanted, directory = settings.text("store"), settings.text("store_dir")
    if wanted == "auto":
        local = is_local(spark) and not is_url(directory)
        wanted = "local" if local else "shared" if directory else "spark"
    if wanted == "local" and not is_local(spark):
        raise UserError(
            f"sparkfusion.store is local, but executors of {spark.master} are on other machines",
            hint="set sparkfusion.store to spark, or to shared with a sparkfusion.store_dir that all of them reach",
        )
    check_local(wanted, directory)
    if wanted == "shared" and not directory:
        raise UserError(
            "sparkfusion.store is shared, but sparkfusion.store_dir is not set",
            hint="set sparkfusion.store_dir to a directory or URL that driver and executors reach",
        )
    if wanted == "spark":
        return StoreChoice("spark", "")
    return StoreChoice("shared" if wanted == "shared" else "local", directory)
