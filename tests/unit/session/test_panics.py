"""A panic of native code reaches users as an error; what ends a program passes as it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion.errors import InternalError
from sparkfusion.ids import new_query_id
from sparkfusion.plan.stage import Head
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.query import RunningQuery
from tests.unit.session.test_whole_job import FakeJob


class PanicException(BaseException):
    """What a Rust panic looks like from Python."""


def raise_it(error: BaseException) -> None:
    raise error


def read(error: BaseException) -> None:
    job = FakeJob([1], error)
    list(RunningQuery(new_query_id(), pa.schema([("v", pa.int64())]), job, Head((0,)), lambda event: None))  # type: ignore[arg-type]


CALLS = {"call": lambda error: call_datafusion(raise_it, error), "read": read}


@pytest.mark.parametrize("call", CALLS)
def test_a_panic_is_an_error(call: str) -> None:
    with pytest.raises(InternalError, match="DataFusion panicked: range start"):
        CALLS[call](PanicException("range start"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_passes(call: str, end: type[BaseException]) -> None:
    with pytest.raises(end):
        CALLS[call](end())
