"""What only notebooks need: the magics of `%load_ext sparkfusion`, and progress below a cell. The extra is `notebook`.

How a DataFrame and an explanation look in a notebook is in `session`: they do not need IPython for it.
"""

from __future__ import annotations

from sparkfusion.notebook.cell_display import show_progress

__all__ = ["show_progress"]
