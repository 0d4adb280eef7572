"""Where things lie: what ships with the package, a user's own beside it, and the checkout."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLES = PACKAGE / "examples"
EXPERIMENTS = PACKAGE / "experiments"
VALIDATION = PACKAGE / "validation"


def checkout() -> Path | None:
    """Return the checkout that the package lies in; `None` if it is installed."""
    root = PACKAGE.parents[1]
    is_checkout = PACKAGE.parent.name == "python" and (root / "crates").is_dir()
    return root if is_checkout else None


def folders(shipped: Path, start: Path | None = None) -> list[Path]:
    """Return a folder that ships with the package and, if there is one, a user's own of its name.

    That is the nearest, from `start` (here) upwards.
    """
    start = (start or Path.cwd()).resolve()
    named = (folder / shipped.name for folder in (start, *start.parents))
    # One may stand in a folder of which one may not see what is in it, or in those above it.
    seen = (folder for folder in named if os.access(folder, os.X_OK))
    own = next((folder for folder in seen if folder.is_dir()), shipped)
    # In a checkout the nearest is a link to what ships.
    return [shipped] if own.resolve() == shipped else [shipped, own]
