"""Notebooks: the magics of `%load_ext sparkfusion`, and progress below a cell. Needs the extra `notebook`.

The HTML of DataFrames and explanations is in `session`, because it does not need IPython.
"""

from __future__ import annotations

from sparkfusion.notebook.cell_display import show_progress

__all__ = ["show_progress"]
