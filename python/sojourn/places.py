"""Where things lie: what ships with the package, a user's own beside it, and the checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
EXAMPLES = PACKAGE / "examples"
EXPERIMENTS = PACKAGE / "experiments"
VALIDATION = PACKAGE / "validation"


def checkout() -> Path | None:
    """Return the checkout that the package lies in; `None` if it is installed."""
    root = PACKAGE.parents[1]
    is_checkout = PACKAGE.parent.name == "python" and (root / "crates").is_dir()
    return root if is_checkout else None


def own(name: str, start: Path | None = None) -> Path | None:
    """Return a user's own folder of this name: the nearest, from `start` (here) upwards.

    `None` if there is none, or if it is the one that ships with the package.
    """
    start = (start or Path.cwd()).resolve()
    found = [folder / name for folder in (start, *start.parents) if (folder / name).is_dir()]
    return found[0] if found and found[0].resolve() != PACKAGE / name else None
