"""Methods of a session that wrap DataFusion's: the same names and arguments, with more helpful errors."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import datafusion
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError, clean_message
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.datafusion_calls import call_datafusion, unwrap
from sparkfusion.session.directory_tables import directory_table_of
from sparkfusion.session.engine import Engine
from sparkfusion.session.file_tables import METHOD_FORMATS, arrange, read_files, register_files
from sparkfusion.session.forked import check_not_forked
from sparkfusion.session.lossy import UNNAMED, lost_options
from sparkfusion.session.method_examples import EXAMPLES
from sparkfusion.session.skipping import check_on_error, skipping_table
from sparkfusion.session.table_names import call_with_tables, name_hint
from sparkfusion.urls import is_url, plain_path

P = ParamSpec("P")
R = TypeVar("R")

_HOME = "sparkfusion.session.catalog"
_SKIPPING = ("csv", "json")
_HIVE = inspect.Parameter("hive", inspect.Parameter.KEYWORD_ONLY, default=True, annotation="bool")
_ON_ERROR = inspect.Parameter("on_error", inspect.Parameter.KEYWORD_ONLY, default="fail", annotation="str")
_HIVE_TEXT = "hive: whether directories named `column=value` give columns."
_ON_ERROR_TEXT = 'on_error: "fail", or "skip" to leave out lines that cannot be read; the query reports how many.'
_EXAMPLES = re.compile(r"^Example[^\n]*:\n(?:\n|[ >.].*\n)*", re.MULTILINE)
_OF_ROWS = frozenset({"register_record_batches", "register_batch"})


class OnEngine(Protocol):
    """What these methods need of the object that they are methods of: `TableMethods`, which describes it."""

    _engine: Engine

    def _dataframe(self, inner: datafusion.DataFrame) -> DataFrame: ...

    def _skipping_dataframe(self, method: str, arguments: dict[str, Any], *, hive: bool) -> DataFrame: ...


def register_method(
    original: Callable[Concatenate[SessionContext, P], None],
) -> Callable[Concatenate[OnEngine, P], None]:
    """A method that registers a table under its first argument; its errors name the table and the path."""
    return untyped_register_method(original)


def untyped_register_method(original: Callable[..., None]) -> Callable[..., None]:
    """The same for methods that take more than DataFusion's: arguments of ours, or DataFrames of ours."""
    name = original.__name__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: OnEngine, *args: Any, hive: bool = True, on_error: str = "fail", **kwargs: Any) -> None:
        check_not_forked()
        context, tables = self._engine.context, self._engine.tables
        skip = check_on_error(on_error, METHOD_FORMATS.get(name))
        bound = signature.bind(context, *args, **kwargs)
        _, table, source, *_ = bound.arguments.values()
        if (missing := _missing_path(source)) is not None:
            raise UserError(f"cannot register table {_unquote(table)!r}: no file or directory at {missing!r}")
        arguments = {key: unwrap(value) for key, value in bound.arguments.items() if key != "self"}
        try:
            if skip:
                files, options = skipping_table(name, arguments, tables.prepare, hive=hive)
                tables.feeds.register(context, table, WorkUnitFeed(files), options)
                arguments = {}
            elif name in METHOD_FORMATS:
                arranged = arrange(name, arguments, tables.prepare, hive=hive)
                arguments = register_files(context, original, arranged)
            else:
                original(context, **arguments)
        except Exception as error:
            words = error.message if isinstance(error, SparkfusionError) else clean_message(error)
            hint = (error.hint if isinstance(error, SparkfusionError) else None) or name_hint(words, context)
            raise UserError(f"cannot {_describe_table(table, source)}: {words}", hint=hint) from error
        tables.lossy.add(table, lost_options(arguments))
        if name in METHOD_FORMATS:
            made = directory_table_of(name, METHOD_FORMATS[name], arguments) if not skip else None
            if made is not None:
                tables.directories.add(table, made)
            tables.vanished_files.add(table, source)
        if name in _OF_ROWS:
            tables.in_memory.adopt([table])

    _describe_method(method, original, name)
    return method


def read_method(
    original: Callable[Concatenate[SessionContext, P], datafusion.DataFrame],
) -> Callable[Concatenate[OnEngine, P], DataFrame]:
    """A method that makes a DataFrame of rows."""
    return untyped_read_method(original)


def untyped_read_method(original: Callable[..., datafusion.DataFrame]) -> Callable[..., DataFrame]:
    """The same for methods that take more than DataFusion's: arguments of ours, or DataFrames of ours."""
    name = original.__name__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: OnEngine, *args: Any, hive: bool = True, on_error: str = "fail", **kwargs: Any) -> DataFrame:
        check_not_forked()
        context, tables = self._engine.context, self._engine.tables
        skip = check_on_error(on_error, METHOD_FORMATS.get(name))
        arguments = dict(signature.bind(context, *args, **kwargs).arguments)
        missing = _missing_path(arguments["path"]) if name.startswith("read_") else None
        if missing is not None:
            raise UserError(f"cannot read: no file or directory at {missing!r}")
        if skip:
            del arguments["self"]
            return self._skipping_dataframe(name, arguments, hive=hive)
        if name in METHOD_FORMATS:
            del arguments["self"]
            arranged = call_datafusion(arrange, name, arguments, tables.prepare, hive=hive)
            made, arguments = call_datafusion(read_files, context, original, arranged)
        else:
            made = call_with_tables(context, original, context, *args, **kwargs)
            table = made.logical_plan().to_variant().table_name()
            tables.in_memory.adopt([table])
            made = tables.read_names(table, lambda: call_datafusion(context.table, f'"{table}"'), made)
            if arguments.get("name") is None:  # DataFusion made a name up, which nobody knows
                context.deregister_table(f'"{table}"')
        tables.lossy.add(UNNAMED, lost_options(arguments))
        return self._dataframe(made)

    _describe_method(method, original, name)
    return method


def passed_method(
    original: Callable[Concatenate[SessionContext, P], R],
) -> Callable[Concatenate[OnEngine, P], R]:
    """A method that DataFusion answers."""

    @functools.wraps(original)
    def method(self: OnEngine, *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = call_datafusion(original, self._engine.context, *args, **kwargs)
        return answer

    made: Any = method
    _describe_method(made, original, original.__name__)
    return made  # type: ignore[no-any-return]


def _describe_method(method: Callable[..., Any], original: Callable[..., Any], name: str) -> None:
    """Give a method of a session the original's arguments, and ours for files of its format; the original's text, and
    an example of ours."""
    format = METHOD_FORMATS.get(name)
    added = {_HIVE: _HIVE_TEXT} | ({_ON_ERROR: _ON_ERROR_TEXT} if format in _SKIPPING else {}) if format else {}
    signature = inspect.signature(original)
    known = list(signature.parameters.values())
    own = "".join(f"    {text}\n" for text in added.values())
    parts = [
        without_examples(original.__doc__ or ""),
        f"Arguments of sparkfusion's own:\n{own}" if own else "",
        inspect.cleandoc(EXAMPLES.get(name, "")),
    ]
    method.__doc__ = "\n\n".join(part.strip("\n") for part in parts if part) + "\n"
    method.__module__, method.__qualname__ = _HOME, f"TableMethods.{name}"
    method.__dict__["__signature__"] = signature.replace(parameters=[*known, *added])
    del method.__dict__["__wrapped__"]  # or tools would show the original


def without_examples(text: str) -> str:
    """A docstring of DataFusion without its examples, which are about its own session.

    >>> print(without_examples("Do it.\\n\\nExamples:\\n    >>> 1\\n    1\\n\\nArgs:\\n    name: whose"))
    Do it.
    <BLANKLINE>
    Args:
        name: whose
    """
    return _EXAMPLES.sub("", inspect.cleandoc(text) + "\n").strip()


def _describe_table(reference: str, source: object) -> str:
    """What a method was to do: `read 'a.csv'` if the table is named like its file, as those of paths in SQL are."""
    name = _unquote(reference)
    if not isinstance(source, str | PathLike):
        return f"register table {name!r}"
    return f"read {name!r}" if name == str(source) else f"register table {name!r} from {str(source)!r}"


def _unquote(reference: str) -> str:
    """A table's name as it is shown, which has quotes of its own around it.

    >>> _unquote('"a.csv"'), _unquote('shop."Orders"')
    ('a.csv', 'shop."Orders"')
    """
    inner = reference[1:-1].replace('""', "")
    return (
        reference[1:-1].replace('""', '"') if reference[:1] == '"' == reference[-1:] and '"' not in inner else reference
    )


def _missing_path(source: object) -> str | None:
    """The first path of a source that does not exist. DataFusion treats a missing directory like an empty one, and a
    user would wonder where the rows are."""
    for path in source if isinstance(source, list) else [source]:
        if isinstance(path, str | PathLike) and _is_missing(str(path)):
            return str(path)
    return None


def _is_missing(path: str) -> bool:
    return not is_url(path) and not any(mark in path for mark in "*?[") and not Path(plain_path(path)).exists()
