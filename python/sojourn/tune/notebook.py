"""Searches in notebooks: the table, sentences and picture of `sojourn tune`."""

import html

from sojourn.show.console import text_table
from sojourn.show.notebook import as_html, as_svg
from sojourn.tune import plot, tables
from sojourn.tune.trials import Tuned


def tuned_html(tuned: Tuned) -> str:
    """Return a search as HTML."""
    text = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in tables.sentences(tuned))
    picture = as_svg(lambda stem: plot.draw(tuned, stem))
    return as_html([text_table(tables.table(tuned))]) + text + picture
