"""Lets pages link to files of the repository that are no pages: the site has copies of them."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")
"""A link from a page to something beside the folder of pages."""


def _copy(name: str) -> str:
    """Return where the site has a file of the repository; what is read as text ends so."""
    return f"files/{name}" if name.endswith((".png", ".ipynb")) else f"files/{name}.txt"


def on_files(files: Files, config: Any) -> Files:
    """Add what pages link to."""
    root = Path(config.config_file_path).parent
    for page in list(files.documentation_pages()):
        for name, _ in OUTSIDE.findall(page.content_string):
            source = root / name
            if source.is_file() and files.get_file_from_path(_copy(name)) is None:
                content = source.read_bytes()
                files.append(File.generated(config, _copy(name), content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to the copies; what is no file stays as it is, and is told as broken."""
    return OUTSIDE.sub(lambda link: f"]({_copy(link[1])})", markdown)
