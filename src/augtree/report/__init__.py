"""Pictures and tables for people.

summary, summary_lines   a data set in figures: counts by split, class and group, sizes
sample_sheet             some samples of each class, as a PNG file
augmented_rows           versions of pictures by a policy, with the operations that made them
draw_sheet               rows of pictures as a PNG file
"""

from augtree.report.samples import sample_sheet
from augtree.report.sheet import Row, augmented_rows, draw_sheet
from augtree.report.summary import summary, summary_lines

__all__ = ["Row", "augmented_rows", "draw_sheet", "sample_sheet", "summary", "summary_lines"]
