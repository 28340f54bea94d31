"""Turn SQL text into a lazy query. SET, RESET, SHOW and EXPLAIN are answered here; DataFusion reads everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext, SQLOptions

from sparkfusion.config import check_dialect
from sparkfusion.errors import SparkfusionError
from sparkfusion.session.chains import check_chains
from sparkfusion.session.changes import cannot_run_at_once, explain_refusals
from sparkfusion.session.damaged_files import name_damaged_file
from sparkfusion.session.datafusion_calls import QUERIES_ONLY, unwrap
from sparkfusion.session.engine import Engine
from sparkfusion.session.explain_statement import (
    datafusion_rows,
    explain_rows,
    is_copy,
    is_planned,
    words_for_datafusion,
)
from sparkfusion.session.external_tables import run_statement
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.named_tables import find_table_names
from sparkfusion.session.settings_table import all_settings_listed
from sparkfusion.session.sql_names import name_in_sql
from sparkfusion.session.statements import (
    CopyQuery,
    ExplainText,
    OptionStatement,
    SetOption,
    is_explain,
    parse_copy,
    parse_statement,
    split_explain,
    without_leading_comments,
)
from sparkfusion.session.table_names import PARAMETER_VIEW, call_with_tables
from sparkfusion.session.table_writes import read_change
from sparkfusion.session.write_modes import split_mode

_EMPTY_PLACEHOLDER = "Ipc error: Expected schema message, found empty stream"


class SqlInterpreter:
    """Interprets one statement. `values` of `$name` in the text are scalars; those in `named` may be DataFrames too."""

    def __init__(
        self,
        engine: Engine,
        values: Mapping[str, Any] | None,
        named: Mapping[str, Any],
        dialect: str | None = None,
    ) -> None:
        """`dialect`: None means the session's setting."""
        self._engine = engine
        self._values = values
        self._named = named
        self._spark = check_dialect(dialect or engine.settings.ours.text("dialect")) == "spark"

    def interpret(self, text: str) -> LazyQuery:
        """The query of a statement. A statement that makes or drops tables, or that sets an option, is run now."""
        return replace(self._interpret(text), text=text)

    def _interpret(self, text: str) -> LazyQuery:
        text = without_leading_comments(text)
        statement = parse_statement(text)
        if statement is not None:
            return self._answer(statement)
        if self._spark:
            return self._read_spark(text)
        if is_explain(text):
            return self._explain(text)
        copied = parse_copy(text)
        if copied is not None:
            return self._copy(copied)
        if self._engine.tables.of_catalog.use(text):
            return LazyQuery(self._engine.context.empty_table().limit(0))
        with self._engine.tables.remember_made_by(text):
            inner = self._ask_datafusion(text)
        return read_change(self._engine, inner)

    def _read_spark(self, text: str) -> LazyQuery:
        asked = split_explain(text)
        prefix = f"{words_for_datafusion(asked)} " if asked.words else ""
        made = self._engine.spark_dialect.read(asked.statement, prefix, {**(self._values or {}), **self._named})
        return self._explain_plan(asked, made) if prefix else LazyQuery(made)

    def _copy(self, copied: CopyQuery) -> LazyQuery:
        text = copied.source if copied.is_query else f"select * from {copied.source}"
        source = self._ask_datafusion(text, allowed=QUERIES_ONLY)
        return self._engine.copy(LazyQuery(source), *split_mode(copied.tail))

    def _ask_datafusion(self, text: str, allowed: SQLOptions | None = None) -> datafusion.DataFrame:
        check_chains(text)
        context, tables, settings = self._engine.context, self._engine.tables, self._engine.settings
        unwrapped = {name: unwrap(value) for name, value in self._named.items()}
        values = dict(self._values) if self._values is not None else None
        before = tables.names() if self._named else set()
        run = partial(call_with_tables, context, context.sql, options=allowed, param_values=values, **unwrapped)
        try:
            with (
                name_damaged_file(
                    partial(_existing_tables, context, text), settings.datafusion_options, tables.prepare
                ),
                all_settings_listed(context, settings, text) as listed,
                settings.reread_after(text),
            ):
                made: datafusion.DataFrame = tables.read_names(
                    text, lambda: run_statement(context, listed, run, tables.prepare, tables.feeds)
                )
                return made
        except SparkfusionError as error:
            if _EMPTY_PLACEHOLDER in error.message:
                raise cannot_run_at_once() from error
            raise
        finally:
            for view in tables.names() - before if self._named else ():
                if PARAMETER_VIEW.fullmatch(view):  # DataFusion makes one for each DataFrame among the values
                    context.deregister_table(view)

    def _answer(self, statement: OptionStatement) -> LazyQuery:
        settings = self._engine.settings
        if isinstance(statement, SetOption):
            if statement.value is None:
                del settings[statement.name]
            else:
                settings[statement.name] = statement.value
            return LazyQuery(self._engine.context.empty_table().limit(0))
        shown = settings.as_table()
        if statement.name is not None:
            shown = shown.filter(pc.equal(shown["name"], statement.name))
            if not shown.num_rows:
                settings[statement.name]  # says what is wrong with the name
        return answer_rows(shown if statement.verbose else shown.select(["name", "value"]))

    def _explain(self, text: str) -> LazyQuery:
        asked = split_explain(text)
        return self._explain_plan(asked, self._ask_datafusion(f"{words_for_datafusion(asked)} {asked.statement}"))

    def _explain_plan(self, asked: ExplainText, explained: datafusion.DataFrame) -> LazyQuery:
        (target,) = explained.logical_plan().inputs()
        if not is_planned(target):
            return answer_rows(datafusion_rows(explained))
        copied = parse_copy(asked.statement) if is_copy(target) else None
        if copied is not None:
            query = self._copy(copied)
        else:
            query = read_change(self._engine, self._engine.context.create_dataframe_from_logical_plan(target))
        with explain_refusals(query.changes):
            return answer_rows(explain_rows(self._engine, explained, replace(query, text=asked.statement), asked))


def _existing_tables(context: SessionContext, text: str) -> list[datafusion.DataFrame]:
    """The tables that a statement names, without those that it would make."""
    names = (".".join(name_in_sql(part) for part in name) for name in find_table_names(text))
    return [context.table(name) for name in names if context.table_exist(name)]


def answer_rows(rows: pa.Table) -> LazyQuery:
    """Rows of ours as a query, without a table in the user's catalog."""
    return LazyQuery(SessionContext().from_arrow(rows))
