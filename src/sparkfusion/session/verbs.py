"""DataFrame verbs that are DataFusion's own: arguments go down as they are, the resulting frame comes back wrapped."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import datafusion

from sparkfusion.errors import UserError, clean_message
from sparkfusion.session.chains import check_chains
from sparkfusion.wording import for_users

if TYPE_CHECKING:
    from sparkfusion.session.frame import DataFrame

_PLANNING_ERROR = re.compile(r'Plan\("(.*)"\)', re.DOTALL)  # how some calls show one, in a RuntimeError


def frame_verb(name: str) -> Callable[..., DataFrame]:
    """A method that calls DataFusion's method of that name; documented and signed like it."""
    original = getattr(datafusion.DataFrame, name)

    @functools.wraps(original)
    def verb(self: DataFrame, *args: Any, **kwargs: Any) -> DataFrame:
        for text in (value for value in args if isinstance(value, str)):
            check_chains(text)
        made = call_datafusion(original, self.to_datafusion(), *map(unwrap, args), **_unwrap_values(kwargs))
        return self._with(made)

    return verb


def call_datafusion(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call DataFusion; its planning errors come out as ours, with its words."""
    try:
        return call(*args, **kwargs)
    except UserError:
        raise
    except Exception as error:
        words = _words(error)
        if words is None:
            raise
        raise UserError(words) from error


def _words(error: Exception) -> str | None:
    """What an error of DataFusion's says; None if it is not DataFusion's."""
    if type(error) is RuntimeError:
        planning = _PLANNING_ERROR.fullmatch(str(error))
        return for_users(planning[1]) if planning else None
    if type(error) is KeyError and error.args:  # its str() would be in quotes
        return str(error.args[0])
    return clean_message(error) if type(error) in (Exception, ValueError) else None


def unwrap(value: Any) -> Any:
    """The DataFusion frame inside one of ours; anything else as it is."""
    to_datafusion = getattr(value, "to_datafusion", None)
    return value if to_datafusion is None else to_datafusion()


def _unwrap_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: unwrap(value) for name, value in values.items()}
