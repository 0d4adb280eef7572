"""What the shell completes: the names of examples, figures, cases, parts and benchmarks.

A key was pressed, so nothing is loaded that draws or computes.
"""

import re

from sojourn.base import paths
from sojourn.bench import scenarios
from sojourn.scenario import encoding
from sojourn.scenario import examples as first_steps

ID = re.compile(r'^ *(?:id|key)="(\w+)"', re.MULTILINE)
"""How figures and papers name themselves, in the files that need not be loaded for that."""


def examples() -> list[str]:
    """Return the names of the examples."""
    return list(first_steps.examples())


def figures() -> list[str]:
    """Return the ids of figures, the keys of papers, and `all`."""
    files = [file for root in paths.folders(paths.EXPERIMENTS) for file in root.glob("*/*.py")]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return sorted({name for text in texts for name in ID.findall(text)} | {"all"})


def cases() -> list[str]:
    """Return the names of the folders that `validate` finds by name."""
    roots = paths.folders(paths.VALIDATION)
    return sorted({file.parent.name for root in roots for file in root.glob("*/cases.toml")})


def parts() -> list[str]:
    """Return the names of all families and parts."""
    families = encoding.parts()
    names = {part["name"] for members in families.values() for part in members}
    return sorted(names | set(families))


def benchmarks() -> list[str]:
    """Return the names of the benchmark's scenarios."""
    return list(scenarios.SCENARIOS)


def scales() -> list[str]:
    """Return the scales at which figures are made."""
    return ["smoke", "quick", "paper"]
