"""Shell completion of names: examples, figures, cases, parts and benchmarks.

Completion must be fast, so each function imports only the module that lists its names.
"""

import re

ID = re.compile(r'^ *(?:id|key)="(\w+)"', re.MULTILINE)
"""Line that defines the id of a figure or the key of a paper, found without importing the file."""


def examples() -> list[str]:
    """Return the names of the examples."""
    from sojourn.scenario import examples as example_files

    return list(example_files.all_examples())


def figures() -> list[str]:
    """Return the ids of figures, the keys of papers, and `all`."""
    from sojourn.base import paths

    files = [file for root in paths.folders(paths.EXPERIMENTS) for file in root.glob("*/*.py")]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return sorted({name for text in texts for name in ID.findall(text)} | {"all"})


def cases() -> list[str]:
    """Return the names of the folders of validation cases."""
    from sojourn.base import paths

    roots = paths.folders(paths.VALIDATION)
    names = {file.parent.name for root in roots for file in root.glob("*/cases.toml")}
    return sorted(names | {"scale"})


def parts() -> list[str]:
    """Return the names of all families and parts."""
    from sojourn.scenario import encoding

    families = encoding.parts()
    names = {part["name"] for members in families.values() for part in members}
    return sorted(names | set(families))


def benchmarks() -> list[str]:
    """Return the names of the benchmark scenarios."""
    from sojourn.bench import scenarios

    return list(scenarios.SCENARIOS)


def formats() -> list[str]:
    """Return the names of the formats of `sojourn import`."""
    from sojourn.imports.formats import NAMES

    return list(NAMES)


def scales() -> list[str]:
    """Return the scales of figures."""
    return ["smoke", "quick", "paper"]


def pictures() -> list[str]:
    """Return the pictures of `sojourn plot`."""
    from sojourn.show.plot.run_pictures import PICTURES

    return list(PICTURES)
