"""Pages in notebooks."""

import html
from pathlib import Path

from sojourn.base import files
from sojourn.runs.results import Result, Run
from sojourn.view import page
from sojourn.view.flow_blocks import SCHEME

HEIGHT = 900
"""Height of the page in a notebook, in pixels."""


class Page:
    """Page of a result, as `sojourn view` writes it."""

    def __init__(self, result: Result) -> None:
        """Create the page of a result."""
        self.text = page.render([Run({SCHEME: "run"}, result)], source="RESULT")

    def write(self, path: str | Path) -> Path:
        """Write the page as one HTML file."""
        files.write_text(Path(path), self.text)
        return Path(path)

    def _repr_html_(self) -> str:
        source = html.escape(self.text)
        style = "width:100%;border:0"
        return f'<iframe srcdoc="{source}" height="{HEIGHT}" style="{style}"></iframe>'
