"""What users may call. A name that appears or goes is a decision, so it is listed here too."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys

import datafusion
import pytest

import sparkfusion
from sparkfusion import public

NAMES = {
    "sparkfusion": """
        Acceleration Cluster DataFrame Explanation Expr ExternalError FeedContext FeedError FeedStats FileUnit
        InternalError Measurement PlanTooDeepError PlanTooLargeError QueryCancelledError ReaderContext Rejected
        RejectedLine ResourceError RunningQuery Session SparkfusionError StoreFullError TaskCrashError UserError
        VerificationError WireFormatError WorkUnit WorkUnitFeed WorkUnitFeedProvider WorkerLostError __version__
        accelerate col column connect functions history lit literal udaf udf udwf
    """,
    "sparkfusion.bench": """
        BenchResult run_tpch
    """,
    "sparkfusion.feeds": """
        Cursor DeltaFiles Files HttpPages IcebergFiles Items LinkHeader ListedFile NextLink Offset PageNumber
        RowGroups
    """,
    "sparkfusion.notebook": """
        show_progress
    """,
    "sparkfusion.transport.base": """
        Access CancelToken FileChunk FrameSource Lease LostInputError TaskEnds TaskOrder TaskReport Transport
        WorkerChannel WorkerInfo WorkerStatus
    """,
    "sparkfusion.verify": """
        CompareOptions Comparison Difference Leg OrderKey Outcome Report VerifyResult assert_distributed_eq
        compare_tables verify_query
    """,
}
DEFINED = {
    "sparkfusion.observe.events": """
        Event FeedProgress JoinDecided KeySetDecided Measured QueryFailed QueryFinished QueryNotDistributed
        QueryPlanned QueryRestarted RowsRejected SkewDecided StageFinished StageSkipped StageStarted
        Subscriber TaskFailed TaskFinished TaskRunning TaskStarted
    """,
    "sparkfusion.observe.otel": """
        Observable instrument
    """,
    "sparkfusion.observe.progress": """
        Progress ProgressState Status advance
    """,
    "sparkfusion.observe.progress_text": """
        StageTexts describe describe_rest describe_stage_at show_bytes show_count show_seconds
    """,
    "sparkfusion.transport.schemes": """
        TRANSPORTS connect is_known known_schemes scheme_of transport_of
    """,
}
"""What modules without `__all__` define, which the docs show too."""
METHODS = {
    "Acceleration": """
        answered close compare df explain explain_text how measure reason
    """,
    "Cluster": """
        access addresses ca certificate extensions key routing token workers
    """,
    "DataFrame": """
        aggregate alias cache cast col collect collect_column column columns count
        createOrReplaceTempView describe distinct distinct_on distribution drop except_all execute_stream
        explain explain_text fill_nan fill_null filter find_qualified_columns head intersect into_view
        join join_on limit logical_plan optimized_logical_plan orderBy parse_sql_expr repartition
        repartition_by_hash schema select select_exprs show sort sort_by stream tail toArrow toPandas
        to_arrow to_arrow_table to_datafusion to_pandas to_polars to_pydict to_pylist to_spark transform
        union union_by_name union_distinct unnest_columns where window withColumn withColumnRenamed
        with_column with_column_renamed with_columns write_csv write_json write_parquet
        write_parquet_with_options write_spark_table write_table
    """,
    "Explanation": """
        model save text
    """,
    "FeedContext": """
        count filters keeps keeps_each limit on_stop projection stop stopped wait
    """,
    "FeedStats": """
        discovering done failed first_unit_seconds found handed most_waiting provider replayed table
        wait_seconds waiting
    """,
    "FileUnit": """
        hosts partition_values path payload range size weight
    """,
    "Measurement": """
        spark sparkfusion speed_up
    """,
    "ReaderContext": """
        headers projection reject rejects schema table
    """,
    "Rejected": """
        count first table
    """,
    "RejectedLine": """
        file line text why
    """,
    "RunningQuery": """
        cancel close feeds graph metrics read_all rejected reports
    """,
    "Session": """
        catalog catalog_names close config context create_dataframe deregister_table deregister_udaf
        deregister_udf deregister_udwf empty_table enable_ident_normalization enable_spark_functions
        from_arrow from_pandas from_polars from_pydict from_pylist lazy_sql on_progress read_arrow read_avro
        read_batch read_batches read_csv read_empty read_json read_parquet read_table register_arrow
        register_avro register_batch register_csv register_dataset register_feed register_json
        register_listing_table register_object_store register_parquet register_record_batches
        register_spark register_spark_udf register_table register_udaf register_udf register_udwf
        register_view session_id session_start_time settings sql subscribe table table_exist udaf udafs
        udf udfs udwf udwfs
    """,
    "WorkUnit": """
        hosts payload weight
    """,
    "WorkUnitFeed": """
        batches inner is_local open remote units
    """,
    "WorkUnitFeedProvider": """
        bytes close feed partitions rows tasks
    """,
}
OTHER_METHODS = {
    "sparkfusion.verify.CompareOptions": """
        absolute_tolerance check_nullability max_differences relative_tolerance unordered_lists
    """,
    "sparkfusion.verify.Comparison": """
        describe differences equal extra_rows float_tolerance_count has max_relative_error missing_rows
        notes
    """,
    "sparkfusion.verify.Difference": """
        count kind text
    """,
    "sparkfusion.verify.Leg": """
        describe error error_kind name seconds table
    """,
    "sparkfusion.verify.OrderKey": """
        ascending column expression label nulls_first
    """,
    "sparkfusion.verify.Outcome": """
        BOTH_FAILED ERROR_MISMATCH NOT_COMPARABLE NOT_DISTRIBUTED PASSED WIRE_LOSS WRONG_ANSWER failed
    """,
    "sparkfusion.verify.Report": """
        add counts failures not_compared ok really_distributed to_json to_json_text to_text total
    """,
    "sparkfusion.verify.VerifyResult": """
        comparison describe find_leg float_tolerance_count graph leg legs name outcome passed query reason
        reproducer stages tasks to_json
    """,
    "sparkfusion.bench.BenchResult": """
        asked compare_with engines facts is_complete is_right place queries rounds scale to_json
    """,
}


@pytest.mark.parametrize("module", NAMES)
def test_a_module_gives_away_what_is_listed(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == NAMES[module].split()


@pytest.mark.parametrize("module", DEFINED)
def test_a_module_defines_what_is_listed(module: str) -> None:
    names: set[str] = set()
    for node in ast.parse(inspect.getsource(importlib.import_module(module))).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    assert sorted(name for name in names if not name.startswith("_")) == DEFINED[module].split()


def test_every_public_name_is_given_away() -> None:
    assert sparkfusion.__all__ == public.__all__
    assert all(getattr(sparkfusion, name) is getattr(public, name) for name in public.__all__)


def test_every_public_class_is_listed() -> None:
    shown = {name: getattr(public, name) for name in public.__all__}
    classes = {name: value for name, value in shown.items() if inspect.isclass(value)}
    ours = {name for name, value in classes.items() if value.__module__.startswith("sparkfusion.")}
    assert {name for name in ours if not issubclass(classes[name], Exception)} == set(METHODS)


@pytest.mark.parametrize("name", ["Expr", "col", "column", "functions", "lit", "literal", "udaf", "udf", "udwf"])
def test_what_expressions_need_is_datafusions_own(name: str) -> None:
    assert getattr(sparkfusion, name) is getattr(datafusion, name)


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, sparkfusion; print({each.partition('.')[0] for each in sys.modules} & set(sys.argv[1:]))"
    heavy = ["datafusion", "pyarrow", "pandas", "IPython", "pyspark", "typing"]
    ended = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


@pytest.mark.parametrize("name", METHODS)
def test_a_class_shows_what_is_listed(name: str) -> None:
    assert _public_members(getattr(public, name)) == METHODS[name].split()


@pytest.mark.parametrize("name", OTHER_METHODS)
def test_a_class_of_another_module_shows_what_is_listed(name: str) -> None:
    module, _, own_name = name.rpartition(".")
    assert _public_members(getattr(importlib.import_module(module), own_name)) == OTHER_METHODS[name].split()


@pytest.mark.parametrize("module", ["sparkfusion.bench", "sparkfusion.verify"])
def test_every_class_of_a_module_is_listed(module: str) -> None:
    shown = importlib.import_module(module)
    classes = {f"{module}.{name}" for name in shown.__all__ if inspect.isclass(getattr(shown, name))}
    assert classes == {name for name in OTHER_METHODS if name.rpartition(".")[0] == module}


def _public_members(shown: type) -> list[str]:
    own = [each for each in shown.__mro__ if each.__module__.startswith("sparkfusion")]
    found = {member for each in own for member in (*vars(each), *vars(each).get("__annotations__", ()))}
    return sorted(member for member in found if not member.startswith("_"))
