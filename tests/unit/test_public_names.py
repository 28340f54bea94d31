"""What users may call. A name that appears or goes is a decision, so it is listed here too."""

from __future__ import annotations

import inspect

import pytest

import sparkfusion
from sparkfusion import public

METHODS = {
    "Cluster": """
        access addresses ca certificate extensions key routing token workers
    """,
    "DataFrame": """
        aggregate alias cache cast col collect column count describe distinct distinct_on distribution drop
        except_all explain explain_text fill_nan fill_null filter head intersect join join_on limit
        logical_plan repartition repartition_by_hash schema select select_exprs show sort sort_by stream
        tail to_arrow to_arrow_table to_datafusion to_pandas to_polars to_pydict to_pylist to_spark
        transform union union_by_name union_distinct unnest_columns window with_column with_column_renamed
        with_columns write_csv write_json write_parquet write_spark_table write_table
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
        cancel close feeds graph read_all rejected reports
    """,
    "Session": """
        catalog close config context create_dataframe deregister_table deregister_udaf deregister_udf
        deregister_udwf enable_spark_functions from_arrow from_pandas from_polars from_pydict from_pylist
        lazy_sql read_arrow read_avro read_csv read_json read_parquet register_arrow register_avro
        register_batch register_csv register_dataset register_feed register_json register_listing_table
        register_object_store register_parquet register_record_batches register_spark register_spark_udf
        register_table register_udaf register_udf register_udwf register_view sql subscribe table table_exist
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


def test_every_public_name_is_given_away() -> None:
    assert sparkfusion.__all__ == public.__all__
    assert all(getattr(sparkfusion, name) is getattr(public, name) for name in public.__all__)


def test_every_public_class_is_listed() -> None:
    shown = {name: getattr(public, name) for name in public.__all__}
    classes = {name for name, shown in shown.items() if inspect.isclass(shown) and not issubclass(shown, Exception)}
    assert classes == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_class_shows_what_is_listed(name: str) -> None:
    own = [each for each in getattr(public, name).__mro__ if each.__module__.startswith("sparkfusion")]
    shown = {member for each in own for member in (*vars(each), *vars(each).get("__annotations__", ()))}
    assert sorted(member for member in shown if not member.startswith("_")) == METHODS[name].split()
