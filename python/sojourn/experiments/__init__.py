"""Finding figures: every file of every paper's folder, with no list to keep.

The published figures are packages beside this file. A user's own lie in the nearest folder
`experiments`, from the current one upwards, in the same form.
"""

import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from sojourn import places
from sojourn._core import ScenarioError
from sojourn.figure import Figure
from sojourn.wording import did_you_mean


def discover(*folders: Path) -> dict[str, Figure]:
    """Return every figure of these folders by its id; else the published and a user's own."""
    figures: dict[str, Figure] = {}
    for root in folders or places.folders(places.EXPERIMENTS):
        package = _package(root)
        # Only a folder with a paper has figures: others of the name `experiments` are not run.
        for paper in sorted(root.glob("*/paper.py")):
            for file in sorted(paper.parent.glob("*.py")):
                module = importlib.import_module(f"{package}.{file.parent.name}.{file.stem}")
                figure = getattr(module, "figure", None)
                if not isinstance(figure, Figure):
                    continue
                if figure.id in figures:
                    raise ScenarioError(f"{file}: the id `{figure.id}` is taken")
                figure.path = file
                figures[figure.id] = figure
    return dict(sorted(figures.items(), key=lambda item: natural(item[0])))


def choose(figures: Mapping[str, Figure], names: Iterable[str]) -> list[Figure]:
    """Return the figures that are meant, each once; a name is an id, the key of a paper, or `all`.

    Raises `ScenarioError` for a name that means none.
    """
    chosen: dict[str, Figure] = {}
    for name in names:
        meant = [one for one in figures.values() if name in (one.id, one.paper.key, "all")]
        if not meant:
            papers = {figure.paper.key for figure in figures.values()}
            hint = did_you_mean(name, [*figures, *papers, "all"])
            listed = _listed(figures)
            raise ScenarioError(f"{name}: there is no such figure{hint} (one of {listed})")
        chosen |= {figure.id: figure for figure in meant}
    return list(chosen.values())


def natural(name: str) -> tuple[str, int, str]:
    """Order `a2` before `a10`."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0), name


def _package(root: Path) -> str:
    """Return the name under which the papers' folders in `root` are imported.

    A user's own are made importable as packages, so that a figure can say `from .paper import
    base`: they need no `__init__.py` and the search path stays as it is. What an earlier call
    imported is forgotten: two folders may bear the same name.
    """
    if root.resolve() == places.EXPERIMENTS:
        return __name__
    for name in [name for name in sys.modules if name.partition(".")[0] == root.name]:
        del sys.modules[name]
    for folder in (root, *(entry for entry in sorted(root.iterdir()) if entry.is_dir())):
        name = root.name if folder == root else f"{root.name}.{folder.name}"
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return root.name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
