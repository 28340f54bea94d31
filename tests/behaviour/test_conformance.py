"""Session and DataFrame offer what datafusion-python offers, or say why not."""

from __future__ import annotations

import inspect
from typing import Any

import datafusion
import pytest

from sparkfusion import DataFrame, Session

pytestmark = [pytest.mark.any_width, pytest.mark.sample("local", "flight", "spark-local")]

_EXTENSION = "takes compiled extensions, which cannot travel to tasks"
_PLANNER = "changes how plans are made; sparkfusion needs plans it knows"
_CONTEXT = "plain access to the context: use session.context"
NOT_OFFERED_BY_SESSION = {
    "add_physical_optimizer_rule": _PLANNER,
    "catalog_names": _CONTEXT,
    "copied_config": "use session.config",
    "create_dataframe_from_logical_plan": _CONTEXT,
    "deregister_object_store": _CONTEXT,
    "deregister_udtf": "table functions are not offered",
    "empty_table": _CONTEXT,
    "enable_ident_normalization": "use session.config",
    "enable_url_table": "makes another context",
    "execute": "runs one partition of a plan on a single node",
    "execute_logical_plan": _CONTEXT,
    "global_ctx": "sessions are explicit",
    "logical_extension_codec_ids": _EXTENSION,
    "parse_capacity_limit": "use session.config",
    "parse_sql_expr": _CONTEXT,
    "physical_extension_codec_ids": _EXTENSION,
    "read_batch": "use from_arrow",
    "read_batches": "use from_arrow",
    "read_empty": _CONTEXT,
    "read_table": "use table",
    "refresh_catalogs": _CONTEXT,
    "register_catalog_provider": _EXTENSION,
    "register_catalog_provider_list": _EXTENSION,
    "register_table_factory": _EXTENSION,
    "register_table_provider": "use register_table",
    "register_udtf": "table functions are not offered",
    "remove_optimizer_rule": _PLANNER,
    "session_id": _CONTEXT,
    "session_start_time": _CONTEXT,
    "set_query_planner": _PLANNER,
    "sql_with_options": "use sql",
    "table_provider": _CONTEXT,
    "udaf": _CONTEXT,
    "udafs": _CONTEXT,
    "udf": _CONTEXT,
    "udfs": _CONTEXT,
    "udwf": _CONTEXT,
    "udwfs": _CONTEXT,
    "with_extensions": _EXTENSION,
    "with_logical_extension_codec": _EXTENSION,
    "with_physical_extension_codec": _EXTENSION,
    "with_python_udf_inlining": _EXTENSION,
}
_SINGLE = "belongs to the single-node frame: use to_datafusion()"
NOT_OFFERED_BY_DATAFRAME = {
    "collect_column": "use collect().column(name)",
    "collect_partitioned": _SINGLE,
    "default_str_repr": _SINGLE,
    "execute_stream": "use stream",
    "execute_stream_partitioned": _SINGLE,
    "execution_plan": _SINGLE,
    "find_qualified_columns": _SINGLE,
    "into_view": "use session.register_view",
    "optimized_logical_plan": _SINGLE,
    "parse_sql_expr": _SINGLE,
    "write_parquet_with_options": "use write_parquet",
}


@pytest.mark.parametrize(
    ("theirs", "ours", "not_offered"),
    [
        (datafusion.SessionContext, Session, NOT_OFFERED_BY_SESSION),
        (datafusion.DataFrame, DataFrame, NOT_OFFERED_BY_DATAFRAME),
    ],
    ids=["SessionContext", "DataFrame"],
)
def test_every_method_of_datafusion_is_offered_or_has_a_reason(
    theirs: type, ours: type, not_offered: dict[str, str]
) -> None:
    public = {name for name in dir(theirs) if not name.startswith("_")}
    # `config` and the like are set when an instance is made.
    offered = {name for name in public if hasattr(ours, name)}
    assert sorted(public - offered) == sorted(not_offered)


def test_methods_take_datafusions_keywords() -> None:
    """A method that has DataFusion's name has its parameter names, too."""
    for theirs, ours in ((datafusion.SessionContext, Session), (datafusion.DataFrame, DataFrame)):
        for name in dir(theirs):
            if name.startswith("_") or not callable(getattr(ours, name, None)):
                continue
            method: Any = getattr(ours, name)
            real = inspect.signature(method, follow_wrapped=False).parameters.values()
            if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= {each.kind for each in real}:
                continue  # passes everything on
            own = set(inspect.signature(method, follow_wrapped=False).parameters)
            wanted = set(inspect.signature(getattr(theirs, name)).parameters)
            missing = wanted - own - LEFT_OUT.get(f"{ours.__name__}.{name}", set())
            assert not missing, f"{ours.__name__}.{name} does not take {sorted(missing)}"


LEFT_OUT = {
    "Session.sql": {"options"},
    "DataFrame.explain": {"verbose", "show_statistics", "analyze_level", "analyze_categories"},
}
"""Parameters that are left out on purpose."""
