"""The formats of `explain`. The command line imports this without the rest of `explain`."""

from __future__ import annotations

from typing import Literal

ExplainFormat = Literal["text", "json", "dot", "html"]
