"""Terminal output: data to standard output, messages to standard error, readable without colour.

`progress` is imported only by commands that measure.
"""

from tollbar.report.terminal.markdown import (
    show_brief_markdown,
    show_comparison_markdown,
    show_listing_markdown,
    show_markdown,
)
from tollbar.report.terminal.streams import (
    be_verbose,
    print_json,
    print_plain,
    say,
    say_detail,
    say_error,
    say_log,
    say_sentence,
    stderr,
    stdout,
)
from tollbar.report.terminal.tables import (
    show_brief,
    show_comparison,
    show_judgement,
    show_listing,
    show_published,
    show_rows,
)

__all__ = [
    "be_verbose",
    "print_json",
    "print_plain",
    "say",
    "say_detail",
    "say_error",
    "say_log",
    "say_sentence",
    "show_brief",
    "show_brief_markdown",
    "show_comparison",
    "show_comparison_markdown",
    "show_judgement",
    "show_listing",
    "show_listing_markdown",
    "show_markdown",
    "show_published",
    "show_rows",
    "stderr",
    "stdout",
]
