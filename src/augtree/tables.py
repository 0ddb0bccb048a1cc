"""Tables in Markdown and CSV, and figures with their spread."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from augtree.errors import printable


def markdown(columns: Mapping[str, Sequence[str]]) -> str:
    """A table, its columns padded to one width.

    >>> print(markdown({"policy": ["none", "ra"], "seeds": ["3", "3"]}))
    | policy | seeds |
    | ------ | ----- |
    | none   | 3     |
    | ra     | 3     |
    """
    columns = {in_cell(head): [in_cell(cell) for cell in cells] for head, cells in columns.items()}
    widths = [max(map(len, [head, *cells])) for head, cells in columns.items()]
    rows: Iterable[Sequence[str]] = zip(*columns.values(), strict=True)
    rows = [list(columns), ["-" * width for width in widths], *rows]
    return "\n".join(f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows)


def html_table(columns: Mapping[str, Sequence[str]]) -> str:
    """A table for a notebook.

    >>> html_table({"policy": ["a < b"]})
    '<table><thead><tr><th>policy</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(printable(each))}</th>" for each in columns)
    rows = zip(*columns.values(), strict=True)
    body = "".join(f"<tr>{''.join(f'<td>{escape(printable(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """Sentences for a notebook, a paragraph each.

    >>> html_lines(["1 < 2"])
    '<p>1 &lt; 2</p>'
    """
    return "".join(f"<p>{escape(printable(line))}</p>" for line in lines)


def in_cell(text: str) -> str:
    r"""Text that keeps to its cell of a Markdown table.

    >>> in_cell("a | b")
    'a \\| b'
    """
    return printable(text).replace("|", "\\|")


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> str:
    r"""Rows as CSV: some columns, or all in the order in which they first occur.

    >>> csv_text([{"policy": "none"}, {"policy": "ra", "seed": 3}])
    'policy,seed\nnone,\nra,3\n'
    """
    names = dict.fromkeys(key for row in rows for key in row) if columns is None else columns
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def figure(value: float | None, spread: float | None = None) -> str:
    """A number with its spread; nothing where there is no number.

    >>> figure(0.5, 0.01), figure(None)
    ('0.5000 ± 0.0100', '')
    """
    return "" if value is None else f"{value:.4f}{plus_minus(spread)}"


def signed(difference: float | None, error: float | None = None) -> str:
    """A difference with its standard error; nothing where there is no difference."""
    return "" if difference is None else f"{difference:+.4f}{plus_minus(error)}"


def counted(count: int, noun: str) -> str:
    """A number of things, the noun in the plural where there is not one.

    >>> counted(1, "training"), counted(1200, "scoring")
    ('1 training', '1,200 scorings')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(9.4), duration(150), duration(7300)
    ('9 s', '2.5 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def plus_minus(error: float | None) -> str:
    """A spread or standard error behind a number."""
    return "" if error is None else f" ± {error:.4f}"
