"""Messages of DataFusion, as users read them."""

from __future__ import annotations

import pytest

from sparkfusion.errors import UserError, classify
from sparkfusion.wording import for_users


@pytest.mark.parametrize(
    ("meant", "said", "kept"),
    [
        ("lenght", "length", True),
        ("summ", "sum", True),
        ("row_num", "row_number", True),
        ("explode", "encode", False),
        ("xyzzy", "today", False),
        ("to_json", "to_hex", False),
    ],
)
def test_only_plausible_suggestions_are_passed_on(meant: str, said: str, kept: bool) -> None:
    text = for_users(f"Error during planning: Invalid function '{meant}'.\nDid you mean '{said}'?")
    assert (f"Did you mean '{said}'?" in text) is kept
    assert f"Invalid function '{meant}'." in text


def test_columns_are_compared_without_their_tables() -> None:
    text = "Schema error: No field named t.{}. Did you mean 't.price'?\nValid fields are t.price."
    assert "Did you mean" in for_users(text.format("prize"))
    assert for_users(text.format("zz")) == "Schema error: No field named t.zz.\nValid fields are t.price."


@pytest.mark.parametrize("table", ["sparkfusion_copy_c99a2bb21cad", '"?table?"', "sparkfusion_rows"])
def test_names_of_ours_are_left_out(table: str) -> None:
    assert (
        for_users(f"No field named {table}.z. Valid fields are {table}.a.") == "No field named z. Valid fields are a."
    )


def test_missing_object_store_is_the_users_to_register() -> None:
    words = "Internal error: No suitable object store found for s3://b/. See `RuntimeEnv::register_object_store`."
    error = classify(Exception(f"DataFusion error: {words}\nThis issue was likely caused by a bug in DataFusion"))
    assert isinstance(error, UserError)
    assert error.message == (
        'no object store is registered for s3://b/: session.register_object_store("s3://", …) adds one'
    )
