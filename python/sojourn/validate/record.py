"""Files of a validation: its tables, and its section of the page of results."""

from collections.abc import Sequence
from pathlib import Path

from sojourn import _core
from sojourn._core import ScenarioError
from sojourn.base import files, paths
from sojourn.base.errors import FileError
from sojourn.show.table import Table, markdown
from sojourn.validate.plot import draw
from sojourn.validate.replay import Outcome, bins_table, queues_table, shares_table, totals_table
from sojourn.validate.tables import all_tables


def write(outcomes: Sequence[Outcome], simulator: str, out: Path) -> list[str]:
    """Write the tables that have rows, and the picture, to a folder; return the files' names."""
    tables = {
        "bins.csv": bins_table(outcomes),
        "totals.csv": totals_table(outcomes),
        "shares.csv": shares_table(outcomes),
        "queues.csv": queues_table(outcomes),
    }
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    for name, table in tables.items():
        files.write_text(out / name, table.write_csv())
    return [*tables, *draw(outcomes, simulator, out / "validation")]


def page_of(folder: Path) -> Path:
    """Return the page of results for a folder of cases, `docs/validation.md`.

    For folders of the package, the page is in the checkout; for a user's folder `validation`, it is
    in the parent folder. Raises `ScenarioError` if Sojourn does not run from a checkout.
    """
    root: Path | None = folder.resolve().parents[1]
    if root == paths.PACKAGE:
        root = paths.checkout()
    if root is None:
        raise ScenarioError("--record: shipped cases need a checkout of Sojourn")
    return root / "docs" / "validation.md"


def record(outcomes: Sequence[Outcome], simulator: str, folder: Path) -> Path:
    """Write the results to the folder's section of the page of results; return the page."""
    page, before, after = section(folder)
    name = folder.resolve().name
    stem = page.with_name(f"validation_{name}")
    pictures = draw(outcomes, simulator, stem)
    stem.with_suffix(".svg").unlink(missing_ok=True)
    parts = [
        f"Made by `sojourn validate {name} --record`, version {_core.VERSION}.",
        *([f"![Completion times by size]({stem.name}.png)"] if pictures else []),
        *_markdown(outcomes, simulator),
    ]
    files.write_text(page, "\n\n".join([before, *parts, after]))
    return page


def record_tables(tables: Sequence[Table], folder: Path) -> Path:
    """Write tables to the folder's section of the page of results; return the page."""
    page, before, after = section(folder)
    name = folder.resolve().name
    parts = [f"Made by `sojourn validate {name} --record`, version {_core.VERSION}."]
    for table in tables:
        parts += [f"**{table.title}**", markdown(table)]
    files.write_text(page, "\n\n".join([before, *parts, after]))
    return page


def section(folder: Path, suffix: str = "") -> tuple[Path, str, str]:
    """Return the page of a folder's section, and the texts before and after the section.

    Raises `FileError` if the page is missing, or does not contain the section.
    """
    page, name = page_of(folder), f"{folder.resolve().name}{suffix}"
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    try:
        text = files.read_text(page, files.MAX_SETTINGS_BYTES)
    except OSError as error:
        raise FileError(f"{page}: cannot be read: {error.strerror}") from None
    before, begin_line, rest = text.partition(begin)
    _, end_line, after = rest.partition(end)
    if not (begin_line and end_line):
        raise FileError(f"{page}: missing lines `{begin}` and `{end}`")
    return page, before + begin, end + after


def _markdown(outcomes: Sequence[Outcome], simulator: str) -> list[str]:
    ratios = [outcome.replay.is_slowdown for outcome in outcomes]
    quantity = "FCT over ideal FCT" if all(ratios) else "FCT in seconds"
    if any(ratios) and not all(ratios):
        quantity = "FCT in seconds, or over the ideal FCT where a title states it"
    parts = [
        f"Mean {quantity}, unless a row or a title names another statistic: "
        f"Sojourn / {simulator} (difference ± two standard errors)."
    ]
    for table in all_tables(outcomes, columns=len(outcomes)):
        parts += [f"**{table.title}**", markdown(table)]
    return parts
