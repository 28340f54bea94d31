"""Every `sparkfusion.*` setting: name, type, default, and what it means.

`SETTINGS` is the one list: `SET`, `SHOW`, `session.config` and `docs/settings.md` all read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PREFIX = "sparkfusion."
TARGET_PARTITIONS = "datafusion.execution.target_partitions"
MIB = 1024 * 1024
ALWAYS = -1
"""A value of some sizes: always use the optimization if it is correct, regardless of cost."""

DIALECTS = ("datafusion", "spark")

SettingType = Literal["int", "bytes", "bool", "text", "choice"]


@dataclass(frozen=True)
class Setting:
    """One setting. `minimum` and `choices` are checked when it is set, not when it is used."""

    name: str
    type: SettingType
    default: int | bool | str
    doc: str
    minimum: int = 0
    choices: tuple[str, ...] = ()


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "sparkfusion.enabled", "bool", True, "Distribute queries. If false, everything runs on single-node DataFusion."
    ),
    Setting(
        "sparkfusion.require_distributed",
        "bool",
        False,
        "Raise an error if a query reads enough to be distributed but cannot be, instead of running it on a single "
        "node.",
    ),
    Setting(
        "sparkfusion.dialect",
        "choice",
        "datafusion",
        "The SQL dialect of queries. `spark`: a query means what it means in Spark SQL, or is refused; this needs the "
        "extra `dialect`. `session.sql(…, dialect=…)` sets it for one query.",
        choices=DIALECTS,
    ),
    Setting(
        "sparkfusion.repr_seconds",
        "int",
        10,
        "How long `print(df)` and `repr(df)` may run a query for the first rows that they show. After that they show "
        "only the columns; 0 means never run it. `df.show()` and notebooks wait for the rows.",
    ),
    Setting(
        "sparkfusion.bytes_per_partition",
        "bytes",
        16 * MIB,
        "Bytes that one task should scan. A query that scans less is not distributed. 1 forces distribution of any "
        "size.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.broadcast_bytes",
        "bytes",
        8 * MIB,
        "If the build side of a join is estimated to be at most this large, it is broadcast to every task. Otherwise "
        "both sides are shuffled.",
    ),
    Setting(
        "sparkfusion.adaptive_broadcast_bytes",
        "bytes",
        64 * MIB,
        "If the build side of a shuffled join turns out to have at most this many bytes, and it costs less, it is "
        "broadcast to every task, and the other side is not shuffled. 0 means never. -1 means always if it is "
        "correct, regardless of cost (for tests).",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.key_set_bytes",
        "bytes",
        32 * MIB,
        "The keys of small filtered tables are computed first. They reduce the scans of large tables that are joined "
        "with them, if the keys have at most this many bytes. 0 means never. -1 means always if it is correct, "
        "regardless of cost (for tests).",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.shared_aggregate_bytes",
        "bytes",
        64 * MIB,
        "If a query contains the same aggregate several times, as with a common table expression that it names twice, "
        "the aggregate is computed once if it reads at least this many bytes. 0 means never. -1 means always if it "
        "is correct, regardless of cost (for tests).",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.skew_bytes",
        "bytes",
        64 * MIB,
        "A shuffle partition with at least this many bytes, and more than five times the median, is divided among "
        "several tasks if it is the probe side of a join that allows it. 0 means never. -1 means every partition if it "
        "is correct, regardless of cost (for tests).",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.swap_factor",
        "int",
        4,
        "If the build side of a shuffled join turns out to have at least this many times the bytes of the probe side, "
        "and more than bytes_per_partition, the sides are swapped: the smaller one is held in memory. 0 means never. "
        "-1 means always if it is correct (for tests).",
        minimum=-1,
    ),
    Setting("sparkfusion.slots", "int", 0, "Tasks that run at the same time. 0 means one for each CPU core."),
    Setting(
        "sparkfusion.tasks",
        "int",
        0,
        "How many tasks a stage has; a stage that cannot have tasks of several partitions has one for each partition. "
        "0 means one for each machine. 1 means that one task runs the whole plan, on several cores of one machine; "
        "that is also what 0 means where all tasks run on one machine (in process, a local Spark master, a single "
        "worker). Queries over feeds or Spark DataFrames, writes, and queries under a memory limit that you set are "
        "split in any case.",
    ),
    Setting(
        "sparkfusion.task_cores",
        "int",
        0,
        "How many partitions one task runs at the same time. 0 means one for each slot of its machine; on a Spark "
        "cluster, for each core of an executor where tasks can ask Spark for them, otherwise spark.task.cpus. 1 means "
        "that every task runs one partition, so that a query is split even on one machine, unless tasks is 1. Such "
        "tasks spill to disk beyond their memory; wider ones do not.",
    ),
    Setting(
        "sparkfusion.task_processes",
        "bool",
        False,
        "In process: run tasks in child processes, so that a native crash or a function that hangs ends one task and "
        "not the program. Readers of feeds and object stores must then be picklable. Workers have an option of their "
        "own.",
    ),
    Setting(
        "sparkfusion.task_memory_bytes",
        "bytes",
        0,
        "Memory of one task. Beyond it, DataFusion spills to disk. 0 means 60% of the machine's memory, divided by the "
        "slots; on YARN and Kubernetes, a share of spark.executor.memoryOverhead. If you set it, queries are split.",
    ),
    Setting(
        "sparkfusion.store_memory_bytes",
        "bytes",
        -1,
        "How much intermediate data (frames) is kept in memory-backed storage. More goes to disk. -1 means an eighth "
        "of the machine's memory.",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.spark_mode",
        "choice",
        "jobs",
        "On Spark, how queries run. `jobs`: each stage is a Spark job. `resident`: stages run on resident workers, "
        "which one long Spark job holds in the executors. Stages then start faster, and each executor runs one Spark "
        "task less at a time.",
        choices=("jobs", "resident"),
    ),
    Setting(
        "sparkfusion.spark_catalog",
        "choice",
        "auto",
        "On Spark, who reads a table of Spark's catalog that a query names. `auto`: DataFusion, from its Parquet "
        "files, if it reads the same rows as Spark, also those of Delta and Iceberg tables; else Spark. `spark`: "
        "always Spark. `off`: queries find only tables of the session.",
        choices=("auto", "spark", "off"),
    ),
    Setting(
        "sparkfusion.resident_idle_seconds",
        "int",
        60,
        "On Spark, resident workers end when no query has used them for this many seconds. The next query starts them "
        "again.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.store",
        "choice",
        "auto",
        "On Spark, how frames get from task to task. `local`: through a directory of this machine. `shared`: through "
        "store_dir, which the driver and all executors must reach. `spark`: through Spark's own shuffle. `auto`: "
        "`local` for a local master; on a cluster, `shared` if store_dir is set, else `spark`. With Spark Connect, "
        "`spark` is not available, and `local` only if the server runs on this machine.",
        choices=("auto", "local", "shared", "spark"),
    ),
    Setting(
        "sparkfusion.store_dir",
        "text",
        "",
        "Directory for frames that exceed store_memory_bytes, and for spills. Empty means the system's temporary "
        "directory. On Spark it may be a URL such as s3://bucket/frames.",
    ),
    Setting(
        "sparkfusion.small_stage_bytes",
        "bytes",
        4 * MIB,
        "On Spark, a stage that reads at most this much runs in the driver, which takes less time than starting a "
        "Spark job. This does not apply to stages with Python functions or joins without keys, nor if frames are at a "
        "URL. If frames are in Spark's shuffle, the output of a stage comes to the driver if it is at most this large. "
        "0 means never.",
    ),
    Setting(
        "sparkfusion.frame_compression",
        "choice",
        "auto",
        "Compression of frames. `auto`: lz4 if they leave the machine, else none.",
        choices=("auto", "none", "lz4", "zstd"),
    ),
    Setting(
        "sparkfusion.channel_frames",
        "int",
        8,
        "How many record batches may wait for the consumer of a stream. When there are more, the tasks wait.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.worker_patience_seconds",
        "int",
        10,
        "On workers (flight://… and resident ones), a worker that is silent for this many seconds counts as lost, and "
        "its tasks run on others.",
        minimum=1,
    ),
    Setting("sparkfusion.task_retries", "int", 3, "How often a task is retried after an external or internal error."),
    Setting(
        "sparkfusion.max_worker_losses",
        "int",
        3,
        "On workers (flight://… and resident ones), the query fails when this many workers were lost while they ran "
        "the same task.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.merge_small_partitions",
        "bool",
        True,
        "Let one task read several small shuffle partitions, together up to bytes_per_partition.",
    ),
    Setting(
        "sparkfusion.skip_empty_stages",
        "bool",
        True,
        "Do not run a stage that cannot give rows, such as an inner join with an empty side, nor a stage that only "
        "such stages read.",
    ),
    Setting(
        "sparkfusion.memory_table_bytes",
        "bytes",
        MIB,
        "In-memory tables larger than this are written to files. Smaller ones are sent inside plans.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.feed_units_ahead",
        "int",
        1000,
        "How many work units of a feed may wait for a free task. When there are more, the provider waits.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.feed_transport",
        "choice",
        "auto",
        "On Spark, how tasks get work units. `service`: from a server in the driver. `mailbox`: as small files in the "
        "query's store, for executors that cannot connect to the driver; not with the store `spark`. `auto`: the "
        "service; with Spark Connect, the mailbox if tasks run on other machines and feed_host is not set, or if they "
        "cannot connect to it.",
        choices=("auto", "service", "mailbox"),
    ),
    Setting(
        "sparkfusion.feed_host",
        "text",
        "",
        "On Spark, the address of the driver where tasks ask for work units and resident workers register. Empty means "
        "127.0.0.1 for a local master, else spark.driver.host. With Spark Connect, empty means 127.0.0.1 if tasks run "
        "on this machine.",
    ),
    Setting(
        "sparkfusion.feed_port",
        "int",
        0,
        "On Spark, the port of the driver where tasks ask for work units and resident workers register. 0 means any "
        "free port.",
    ),
    Setting(
        "sparkfusion.feed_tls",
        "choice",
        "auto",
        "On Spark, whether tasks talk TLS with the driver where they ask for work units. `auto`: if Spark "
        "authenticates or encrypts its network, and the master is not local. This needs the extra `tls` in the driver.",
        choices=("auto", "always"),
    ),
    Setting(
        "sparkfusion.plain_files",
        "bool",
        False,
        "On Spark, allow frames and spills in files that are not encrypted, although Spark encrypts its own files "
        "(spark.io.encryption.enabled). If false, such a query is an error.",
    ),
    Setting(
        "sparkfusion.event_log",
        "text",
        "",
        "A directory for event logs: a file of JSON lines for each query, with its text, its plan and its events. "
        "`sparkfusion.history` and `sparkfusion explain --from-log` read them. Empty means no logs.",
    ),
    Setting(
        "sparkfusion.max_plan_bytes",
        "bytes",
        64 * MIB,
        "The largest plan that may be sent to a task. A larger one is an error.",
        minimum=1024,
    ),
)
