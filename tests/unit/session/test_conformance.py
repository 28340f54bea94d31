"""Methods of Session and DataFrame with the names of datafusion-python's take the same arguments."""

from __future__ import annotations

import inspect
from typing import Any

import datafusion

from sparkfusion import DataFrame, Session


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
