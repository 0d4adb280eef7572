"""Files of a validation: its tables, and its section of the page of results."""

from collections.abc import Sequence
from pathlib import Path

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base import files, paths
from sojourn.base.errors import FileError
from sojourn.show.table import markdown
from sojourn.validate.plot import draw
from sojourn.validate.replay import Outcome, bins_table, shares_table, totals_table
from sojourn.validate.tables import every_table


def write(outcomes: Sequence[Outcome], simulator: str, out: Path) -> list[str]:
    """Write tables that have rows, and the picture, into a folder; return the files' names."""
    tables = {
        "bins.csv": bins_table(outcomes),
        "totals.csv": totals_table(outcomes),
        "shares.csv": shares_table(outcomes),
    }
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    for name, table in tables.items():
        files.write_text(out / name, table.write_csv())
    return [*tables, *draw(outcomes, simulator, out / "validation")]


def page_of(folder: Path) -> Path:
    """Return the page on which a folder's results are recorded: `docs/validation.md`.

    That of the folders which ship with the package lies in the checkout; a user's own folder
    `validation` has one beside it.
    """
    root: Path | None = folder.resolve().parents[1]
    if root == paths.PACKAGE:
        root = paths.checkout()
    if root is None:
        raise ScenarioError("--record: keeps what ships with Sojourn, and so wants its checkout")
    return root / "docs" / "validation.md"


def record(outcomes: Sequence[Outcome], simulator: str, folder: Path) -> Path:
    """Write the results into the folder's page, between the marks of its section."""
    page, before, after = section(folder)
    name = folder.resolve().name
    stem = page.with_name(f"validation_{name}")
    drawn = draw(outcomes, simulator, stem)
    stem.with_suffix(".svg").unlink(missing_ok=True)
    parts = [
        f"Made by `sojourn validate {name} --record`, version {_core.VERSION}.",
        *([f"![Completion times by size]({stem.name}.png)"] if drawn else []),
        *_markdown(outcomes, simulator),
    ]
    files.write_text(page, "\n\n".join([before, *parts, after]))
    return page


def section(folder: Path, of: str = "") -> tuple[Path, str, str]:
    """Return the page of a folder's section, and its text up to and from the section."""
    page, name = page_of(folder), f"{folder.resolve().name}{of}"
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    try:
        text = files.read_text(page, files.MAX_SETTINGS_BYTES)
    except OSError as error:
        raise FileError(f"{page}: cannot be read: {error.strerror}") from None
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise FileError(f"{page}: lacks the lines `{begin}` and `{end}`")
    return page, before + begin, end + after


def _markdown(outcomes: Sequence[Outcome], simulator: str) -> list[str]:
    parts = [f"Numbers are ours / {simulator}; in brackets the difference ± two standard errors."]
    for one in every_table(outcomes, abreast=len(outcomes)):
        parts += [f"**{one.title}**", markdown(one)]
    return parts
