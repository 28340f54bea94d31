"""Methods of a session show the arguments that they take."""

from __future__ import annotations

import inspect

import datafusion
import pytest

from sparkfusion import DataFrame, Session
from sparkfusion.session.dataframe_verbs import DataFrameVerbs
from sparkfusion.session.file_tables import METHOD_FORMATS


@pytest.mark.parametrize("name", METHOD_FORMATS)
def test_a_method_for_files_shows_its_own_arguments(name: str) -> None:
    method = getattr(Session, name)
    shown = inspect.signature(method).parameters
    own = set(shown) - set(inspect.signature(getattr(datafusion.SessionContext, name)).parameters)
    assert own == ({"hive", "on_error"} if METHOD_FORMATS[name] in ("csv", "json") else {"hive"})
    assert all(shown[each].kind is inspect.Parameter.KEYWORD_ONLY for each in own)
    assert all(f"{each}: " in (inspect.getdoc(method) or "") for each in own)


VERBS = [name for name in vars(DataFrameVerbs) if not name.startswith("_")]


@pytest.mark.parametrize("name", [*VERBS, "tail"])
def test_a_verb_takes_datafusions_arguments(name: str) -> None:
    theirs = inspect.signature(getattr(datafusion.DataFrame, name)).parameters.values()
    ours = inspect.signature(getattr(DataFrame, name)).parameters.values()
    assert [(each.name, each.kind, each.default) for each in ours] == [
        (each.name, each.kind, each.default) for each in theirs
    ]


def test_methods_that_are_made_are_named_like_others() -> None:
    """For `help` and for tools that look for the code."""
    assert Session.register_parquet.__qualname__ == "TableMethods.register_parquet"
    assert "dfn." not in (inspect.getdoc(Session.register_batch) or "")
    assert "Args:" in (inspect.getdoc(Session.register_batch) or "")


def test_other_methods_are_signed_like_datafusions() -> None:
    assert "hive" not in inspect.signature(Session.register_view).parameters
    assert inspect.signature(Session.from_pydict) == inspect.signature(datafusion.SessionContext.from_pydict)
