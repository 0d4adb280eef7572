"""Discovery of figures in the folders of papers.

The published figures are in the folders of `sojourn.experiments`. A user's figures are in the
nearest folder `experiments`, from the current folder upwards, in the same form.
"""

import hashlib
import importlib
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

from sojourn._core import ScenarioError
from sojourn.base import paths
from sojourn.base.messages import did_you_mean, natural_key
from sojourn.figures.figure import Figure


def discover(*folders: Path) -> dict[str, Figure]:
    """Return all figures of these folders by id; by default the published and the user's figures.

    Raises `ScenarioError` if two figures have the same id.
    """
    figures: dict[str, Figure] = {}
    for root in folders or paths.folders(paths.EXPERIMENTS):
        package = _package(root)
        # A folder without `paper.py` is not imported: it may have nothing to do with Sojourn.
        for paper in sorted(root.glob("*/paper.py")):
            for file in sorted(paper.parent.glob("*.py")):
                module = importlib.import_module(f"{package}.{file.parent.name}.{file.stem}")
                figure = getattr(module, "figure", None)
                if not isinstance(figure, Figure):
                    continue
                if figure.id in figures:
                    raise ScenarioError(f"{file}: duplicate figure id `{figure.id}`")
                figure.path = file
                figures[figure.id] = figure
    return dict(sorted(figures.items(), key=lambda item: natural_key(item[0])))


def choose(figures: Mapping[str, Figure], names: Iterable[str]) -> list[Figure]:
    """Return the named figures without duplicates; a name is an id, the key of a paper, or `all`.

    The text of figures writes ids in capitals, so that case is ignored.

    Raises `ScenarioError` for an unknown name.
    """
    chosen: dict[str, Figure] = {}
    for name in names:
        same = name.casefold()
        matches = [
            item
            for item in figures.values()
            if same in (item.id.casefold(), item.paper.key.casefold(), "all")
        ]
        if not matches:
            papers = {figure.paper.key for figure in figures.values()}
            hint = did_you_mean(name, [*figures, *papers, "all"])
            allowed = ", ".join(f"`{figure}`" for figure in figures)
            raise ScenarioError(f"{name}: unknown figure{hint} (allowed: {allowed})")
        chosen |= {figure.id: figure for figure in matches}
    return list(chosen.values())


def _package(root: Path) -> str:
    """Return the name of the package under which the papers' folders in `root` are imported.

    A user's folder becomes a package, so that a figure can use `from .paper import base` without
    an `__init__.py` and without a change of `sys.path`. The hash of the path makes the name of the
    package unique. Modules of an earlier call are removed, so that changed files are read again.
    """
    if root.resolve() == paths.EXPERIMENTS:
        return "sojourn.experiments"
    package = f"experiments_{hashlib.sha256(bytes(root.resolve())).hexdigest()[:16]}"
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    spec = ModuleSpec(package, None, is_package=True)
    spec.submodule_search_locations = [str(root)]
    sys.modules[package] = module_from_spec(spec)
    importlib.invalidate_caches()
    return package
