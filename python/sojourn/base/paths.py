"""Paths of data: in the package, in a user's folders of the same names, and in the checkout."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLES = PACKAGE / "examples"
EXPERIMENTS = PACKAGE / "experiments"
VALIDATION = PACKAGE / "validation"


def checkout() -> Path | None:
    """Return the root of the checkout that contains the package; `None` if it is installed."""
    root = PACKAGE.parents[1]
    is_checkout = PACKAGE.parent.name == "python" and (root / "crates").is_dir()
    return root if is_checkout else None


def folders(package_folder: Path, start: Path | None = None) -> list[Path]:
    """Return a folder of the package and, if there is one, the user's folder of the same name.

    The user's folder is the nearest one in `start` (default: the current directory) or above.
    """
    start = (start or Path.cwd()).resolve()
    candidates = (folder / package_folder.name for folder in (start, *start.parents))
    # The process may lack the permission to read its current directory or a parent of it.
    readable = (folder for folder in candidates if os.access(folder, os.X_OK))
    user_folder = next((folder for folder in readable if folder.is_dir()), package_folder)
    # In a checkout the nearest folder is a link to the package's.
    is_link = user_folder.resolve() == package_folder
    return [package_folder] if is_link else [package_folder, user_folder]
