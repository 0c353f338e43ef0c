"""Documents that other programs read: JSON by the forms of each module, and a flat row for each cell."""

from tollbar.report.json_forms.cell_rows import cell_rows
from tollbar.report.json_forms.comparison import of_comparison
from tollbar.report.json_forms.whole_run import of_run, of_source

__all__ = ["cell_rows", "of_comparison", "of_run", "of_source"]
