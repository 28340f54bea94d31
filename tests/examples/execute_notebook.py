"""Execute a notebook in a kernel of its own, as a program: `python execute_notebook.py in.ipynb out.ipynb`.

The kernel listens on 127.0.0.1 only. It has ended when this program ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PATIENCE = 240  # for one cell


def main(source: str, target: str) -> None:
    notebook = nbformat.reads(Path(source).read_text(), as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3", allow_errors=True)
    client.create_kernel_manager()
    assert client.km is not None
    client.km.ip = "127.0.0.1"
    client.execute()
    Path(target).write_text(nbformat.writes(notebook))  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(*sys.argv[1:])
