"""DataFrame verbs that are DataFusion's own: arguments go down as they are, the resulting frame comes back wrapped."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import datafusion

from sparkfusion.errors import UserError, clean_message

if TYPE_CHECKING:
    from sparkfusion.session.frame import DataFrame


def frame_verb(name: str) -> Callable[..., DataFrame]:
    """A method that calls DataFusion's method of that name; documented and signed like it."""
    original = getattr(datafusion.DataFrame, name)

    @functools.wraps(original)
    def verb(self: DataFrame, *args: Any, **kwargs: Any) -> DataFrame:
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
        if type(error) not in (Exception, ValueError, KeyError):
            raise
        raise UserError(clean_message(error)) from error


def unwrap(value: Any) -> Any:
    """The DataFusion frame inside one of ours; anything else as it is."""
    to_datafusion = getattr(value, "to_datafusion", None)
    return value if to_datafusion is None else to_datafusion()


def _unwrap_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: unwrap(value) for name, value in values.items()}
