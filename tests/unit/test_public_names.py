"""The public names are listed twice, because the package itself must load nothing: both lists are the same."""

from __future__ import annotations

import sparkfusion
from sparkfusion import public


def test_every_public_name_is_given_away() -> None:
    assert sparkfusion.__all__ == public.__all__
    assert all(getattr(sparkfusion, name) is getattr(public, name) for name in public.__all__)
