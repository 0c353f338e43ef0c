"""What other programs read: the JSON document, which `schema` describes, and a flat row for each cell."""

from tollbar.document.cells import cell_rows
from tollbar.document.made import of_comparison, of_run, of_source

__all__ = ["cell_rows", "of_comparison", "of_run", "of_source"]
