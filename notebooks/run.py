"""Run the notebooks in a kernel, and keep their outputs: `make notebooks`."""

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

for path in sorted(Path(__file__).parent.glob("*.ipynb")):
    book = nbformat.read(path, as_version=4)
    metadata = deepcopy(book.metadata)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            book, timeout=600, kernel_name="python3", resources=resources, record_timing=False
        ).execute()
    book.metadata = metadata
    for cell in book.cells:  # numbers of cells would change whenever one is added
        for part in [cell, *cell.get("outputs", ())]:
            if "execution_count" in part:
                part.execution_count = None
    path.write_text(nbformat.writes(book) + "\n")
    print(path.name)
