"""Pages, pictures and tables for people.

write_report             a run as one self-contained HTML file
LivePage                 the same page, served on this machine, which follows the run
summary, summary_lines   a data set in figures: counts by split, class and group, sizes
sample_sheet             some samples of each class, as a PNG file
augmented_rows           versions of pictures by a policy, with the operations that made them
draw_sheet               rows of pictures as a PNG file
"""

from augtree.report.live import LivePage
from augtree.report.page import write_report
from augtree.report.samples import sample_sheet
from augtree.report.sheet import Row, augmented_rows, draw_sheet
from augtree.report.summary import summary, summary_lines

__all__ = [
    "LivePage",
    "Row",
    "augmented_rows",
    "draw_sheet",
    "sample_sheet",
    "summary",
    "summary_lines",
    "write_report",
]
