"""Finding figures: every file of every folder of `experiments/`, with no list to keep."""

import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from sojourn._core import ScenarioError
from sojourn.figure import Figure
from sojourn.scenario import did_you_mean


def find_experiments(start: Path | None = None) -> Path:
    """Return the nearest folder `experiments`, from `start` upwards, or else the checkout's."""
    start = (start or Path.cwd()).resolve()
    checkout = Path(__file__).resolve().parents[2]
    for folder in (start, *start.parents, checkout):
        if (folder / "experiments").is_dir():
            return folder / "experiments"
    raise ScenarioError(f"there is no folder `experiments` in {start} or above it")


def discover(experiments: Path | None = None) -> dict[str, Figure]:
    """Return every figure in the folders of `experiments`, by its id."""
    root = experiments or find_experiments()
    figures: dict[str, Figure] = {}
    _make_package(root)
    for file in sorted(root.glob("*/*.py")):
        module = importlib.import_module(f"{root.name}.{file.parent.name}.{file.stem}")
        figure = getattr(module, "figure", None)
        if not isinstance(figure, Figure):
            continue
        if figure.id in figures:
            raise ScenarioError(f"{file}: the id `{figure.id}` is taken")
        figure.path = file
        figures[figure.id] = figure
    return dict(sorted(figures.items(), key=lambda item: natural(item[0])))


def choose(figures: Mapping[str, Figure], name: str) -> list[Figure]:
    """Return the figures that `name` means: all, one id, or all of a paper."""
    if name == "all":
        return list(figures.values())
    chosen = [figure for figure in figures.values() if name in (figure.id, figure.paper.key)]
    if not chosen:
        papers = {figure.paper.key for figure in figures.values()}
        hint = did_you_mean(name, [*figures, *papers, "all"])
        raise ScenarioError(f"{name}: there is no such figure{hint} (one of {_listed(figures)})")
    return chosen


def natural(name: str) -> tuple[str, int, str]:
    """Order `a2` before `a10`."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0), name


def _make_package(root: Path) -> None:
    """Make the folders importable as packages, so that a figure can say `from .paper import base`.

    They need no `__init__.py` and the search path stays as it is. What an earlier call imported is
    forgotten: two folders may bear the same name.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == root.name]:
        del sys.modules[name]
    for folder in (root, *(entry for entry in sorted(root.iterdir()) if entry.is_dir())):
        name = root.name if folder == root else f"{root.name}.{folder.name}"
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
