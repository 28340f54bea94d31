"""Methods of a session show the arguments that they take."""

from __future__ import annotations

import inspect

import datafusion
import pytest

from sparkfusion import Session
from sparkfusion.session.file_tables import FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_a_method_for_files_shows_its_own_arguments(name: str) -> None:
    method = getattr(Session, name)
    shown = inspect.signature(method).parameters
    own = set(shown) - set(inspect.signature(getattr(datafusion.SessionContext, name)).parameters)
    assert own == ({"hive", "on_error"} if FORMATS[name] in ("csv", "json") else {"hive"})
    assert all(shown[each].kind is inspect.Parameter.KEYWORD_ONLY for each in own)
    assert all(f"{each}: " in (inspect.getdoc(method) or "") for each in own)


def test_other_methods_are_signed_like_datafusions() -> None:
    assert "hive" not in inspect.signature(Session.register_view).parameters
    assert inspect.signature(Session.from_pydict) == inspect.signature(datafusion.SessionContext.from_pydict)
