"""Lazy loading of the names that a package's stub lists.

As `lazy_loader.attach_stub` (Scientific Python SPEC 1), which does not support aliases: a public
name may differ from that of its module, as `sojourn.pairs` does.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from importlib.util import resolve_name
from pathlib import Path
from typing import Any


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package from the stub next to its file."""
    sources: dict[str, tuple[str, str]] = {}
    public: list[str] = []
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            module = resolve_name(f".{node.module or ''}", package)
            sources |= {alias.name: (module, alias.name) for alias in node.names}
            public += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            sources |= dict.fromkeys(names, sources[node.value.id])
            public += names
    public.sort()

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = sources[name]
        if module == package:
            value: Any = importlib.import_module(f"{package}.{attribute}")
        elif hasattr(owner := importlib.import_module(module), attribute):
            value = getattr(owner, attribute)
        else:
            value = importlib.import_module(f"{module}.{attribute}")
        setattr(sys.modules[package], name, value)
        return value

    return load, public.copy, public
