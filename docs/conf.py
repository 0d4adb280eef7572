"""Configuration of the documentation site; `make site` builds it into site/."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "python"))

project = "Sojourn"
project_copyright = "the Sojourn authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
]
html_theme = "furo"
html_title = "Sojourn"
html_copy_source = False

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

bibtex_bibfiles = ["papers.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "label"

# Single backticks in docstrings are code, as in Markdown.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
autoclass_content = "class"

KEYS = set(
    re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/papers.bib").read_text(encoding="utf-8"), re.M)
)
CITATION = re.compile(r"(?<![`\w\]])\[([a-z]+\d{2})\](?![(\[:])")


OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+\.md)(?:#[^)]*)?\)")
"""A link to a Markdown file of the repository that is not a page of the site."""


def convert(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Turn keys such as `[dctcp10]` into citations, and links out of docs/ into downloads."""

    def citation(match: re.Match[str]) -> str:
        return f"{{cite:p}}`{match[1]}`" if match[1] in KEYS else match[0]

    source[0] = OUTSIDE.sub(r"{download}`\1 <\2>`", CITATION.sub(citation, source[0]))


def setup(app: Sphinx) -> None:
    """Register the conversion of pages."""
    app.connect("source-read", convert)
