"""Calls of DataFusion: our DataFrames are unwrapped, and DataFusion's errors become ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from datafusion import SQLOptions

from sparkfusion.errors import InternalError, UserError, clean_message, panics_as_errors
from sparkfusion.wording import for_users

QUERIES_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
"""With these options DataFusion refuses every statement that is not a query."""

_PLANNING_ERROR = re.compile(r'Plan\("(.*)"\)', re.DOTALL)  # how some calls show one, in a RuntimeError
_PANIC_HINT = "this is a defect of DataFusion, which a damaged file can cause too; try the query in another form"


def call_datafusion(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call DataFusion. Its planning errors and its panics become ours, with the same message."""
    try:
        with panics_as_errors():
            return call(*args, **kwargs)
    except UserError:
        raise
    except InternalError as error:
        error.hint = error.hint or _PANIC_HINT
        raise
    except Exception as error:
        words = _words(error)
        if words is None:
            raise
        raise UserError(words) from error


def _words(error: Exception) -> str | None:
    """The message of an error; None if it is not DataFusion's."""
    if type(error) is RuntimeError:
        planning = _PLANNING_ERROR.fullmatch(str(error))
        return for_users(planning[1]) if planning else None
    if type(error) is KeyError and error.args:  # its str() would be in quotes
        return str(error.args[0])
    return clean_message(error) if type(error) in (Exception, ValueError) else None


def unwrap(value: Any) -> Any:
    """DataFusion's DataFrame inside one of ours; anything else as it is."""
    to_datafusion = getattr(value, "to_datafusion", None)
    return value if to_datafusion is None else to_datafusion()
