"""Finding figures: every file of every paper's folder, with no list to keep.

The published figures are folders of `sojourn.experiments`. A user's own lie in the nearest folder
`experiments`, from the current one upwards, in the same form.
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
    """Return every figure of these folders by its id; else the published and a user's own."""
    figures: dict[str, Figure] = {}
    for root in folders or paths.folders(paths.EXPERIMENTS):
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
    return dict(sorted(figures.items(), key=lambda item: natural_key(item[0])))


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


def _package(root: Path) -> str:
    """Return the name of the package under which the papers' folders in `root` are imported.

    A user's own are made importable as packages, so that a figure can say `from .paper import
    base`: they need no `__init__.py` and the search path stays as it is. The package's name is that
    of no other folder. Files that an earlier call imported are imported anew.
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


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
