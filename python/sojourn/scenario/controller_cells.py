"""Source of a controller that is defined in a cell of a notebook.

Other processes execute a controller from its text. For a class in a cell, the text consists of the
class and of the imports, constants, functions and classes of the notebook that it uses; other
statements of the cell, such as one that starts a run, do not belong to it.
"""

import ast
import inspect
import linecache
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

FILE = "cell.py"
"""Name of the file which the text of a class in a cell would have."""


class SourceError(Exception):
    """The text of a class cannot be collected; the message gives the reason."""


def source(kind: type) -> str:
    """Return the text of a module that defines a class from a cell.

    Raises `SourceError` if the class, or a name that it uses, has no text.
    """
    definitions: dict[str, str] = {}
    _add(kind.__name__, kind, vars(sys.modules[kind.__module__]), definitions)
    return "\n\n".join(definitions.values()) + "\n"


def _add(name: str, value: Any, names: dict[str, Any], definitions: dict[str, str]) -> None:
    """Add the definition of a name, after those that it needs."""
    # A decorator such as `functools.cache` may return an object of its own.
    defined = inspect.unwrap(value) if callable(value) else value
    is_own = getattr(defined, "__module__", None) == names.get("__name__")
    if isinstance(defined, type | FunctionType) and is_own:
        text = _definition(defined)
        definitions[name] = ""  # A function may use itself.
        for needed in _names(text):
            if needed not in definitions and needed in names:
                _add(needed, names[needed], names, definitions)
        # Its place is after what it needs.
        del definitions[name]
        definitions[name] = text
    else:
        statement = None if is_own else _import(name, value)
        definitions[name] = statement or _constant(name, value)


def _names(text: str) -> Iterator[str]:
    """Yield the global names that a definition uses, builtins included."""
    tables = [symtable.symtable(text, FILE, "exec")]
    for table in tables:
        tables += table.get_children()
        is_module = table.get_type() == "module"
        for symbol in table.get_symbols():
            is_global = not symbol.is_assigned() if is_module else symbol.is_global()
            if is_global and symbol.is_referenced():
                yield symbol.get_name()


def _definition(value: type | FunctionType) -> str:
    """Return the text of a class or function, with its decorators."""
    for file in _files(value):
        text = "".join(linecache.getlines(file))
        for node in reversed(_statements(text)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == value.__qualname__:
                first = min([node, *node.decorator_list], key=lambda part: part.lineno)
                return "\n".join(text.splitlines()[first.lineno - 1 : node.end_lineno])
    kind = "class" if isinstance(value, type) else "def"
    raise SourceError(f"no cell has the statement `{kind} {value.__qualname__}` at its top level")


def _statements(text: str) -> list[ast.stmt]:
    """Return the statements of a cell; none of a text that is not Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return []


def _files(value: type | FunctionType) -> Iterator[str]:
    """Yield the names of the cells that may define a class or function, the likeliest first."""
    if isinstance(value, FunctionType):
        yield value.__code__.co_filename
        return
    # Methods that `dataclasses` adds have no cell, and a class may have no others.
    for method in vars(value).values():
        if isinstance(method, FunctionType) and method.__module__ == value.__module__:
            yield method.__code__.co_filename
    yield from (file for file in reversed(linecache.cache) if not Path(file).is_file())


def _import(name: str, value: Any) -> str | None:
    """Return the statement that imports a value, if there is one."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module, original = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module and getattr(sys.modules.get(module), original, None) is value:
        return f"from {module} import {original} as {name}"
    return None


def _constant(name: str, value: Any) -> str:
    """Return the assignment of a value that has a literal."""
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return f"{name} = {text}"
    except (ValueError, SyntaxError, TypeError):
        pass
    raise SourceError(f"it uses `{name}`, whose type {type(value).__name__} has no literal")
