"""Differences between a class and the class that its text defines.

A run executes the text of a controller. What a program changes afterwards, such as an attribute of
the class or a constant that its methods use, is not in the text.
"""

import dis
from collections.abc import Iterator
from reprlib import repr as _short
from types import CodeType, FunctionType
from typing import Any

from sojourn.scenario.controller import Controller

PLAIN = (bool, int, float, complex, str, bytes, type(None))
"""Types of values that are compared, alone and in lists, tuples, sets and dictionaries."""


CODE = ("co_name", "co_argcount", "co_names", "co_varnames", "co_freevars")
"""Attributes of the code of functions that are compared, besides constants."""


def find_change(kind: type[Controller], executed: type[Controller]) -> str | None:
    """Return the first difference in words, or `None` if the classes are the same.

    Compared are the names, constants and defaults of methods, attributes that have plain values,
    and the same of the constants, functions and classes that the methods use.
    """
    return next(_Comparison().of_classes(kind, executed), None)


class _Comparison:
    """Comparison of definitions with those in an execution of their text."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()

    def of_classes(self, own: type, executed: type) -> Iterator[str]:
        for base in own.__mro__:
            others = {other.__name__: other for other in executed.__mro__}
            other = others.get(base.__name__)
            if other is None:
                yield f"`{own.__name__}` is derived from `{base.__name__}`, but not in its text"
            elif base is not other:
                for name, value in vars(base).items():
                    # `dataclasses` and the interpreter add names of this form.
                    if not name.startswith("__") or name == "__post_init__":
                        path = f"{own.__name__}.{name}"
                        yield from self._of_values(path, value, vars(other).get(name, ...))

    def _of_values(self, path: str, own: Any, executed: Any) -> Iterator[str]:
        own, executed = _function(own), _function(executed)
        if own is executed:
            return
        if isinstance(own, FunctionType | type):
            if own in self._seen:
                return
            self._seen.add(own)
        if isinstance(own, FunctionType) and isinstance(executed, FunctionType):
            yield from self._of_functions(path, own, executed)
        elif isinstance(own, type) and isinstance(executed, type):
            yield from self.of_classes(own, executed)
        elif _is_plain(own) and executed is ...:
            yield f"`{path}` is {_short(own)}, but its text lacks it"
        elif _is_plain(own) and _is_plain(executed) and not _are_equal(own, executed):
            found = f"{_short(executed)} when its text is executed"
            yield f"`{path}` is {_short(own)}, but {found}"

    def _of_functions(self, path: str, own: FunctionType, executed: FunctionType) -> Iterator[str]:
        if not _are_same(own.__code__, executed.__code__):
            yield f"`{path}` is not the function in its text"
            return
        yield from self._of_values(f"{path}: default", own.__defaults__, executed.__defaults__)
        yield from self._of_values(f"{path}: default", own.__kwdefaults__, executed.__kwdefaults__)
        for name in _globals(own.__code__):
            if name in own.__globals__ and name in executed.__globals__:
                yield from self._of_values(name, own.__globals__[name], executed.__globals__[name])


def _function(value: Any) -> Any:
    """Return the function of a method of any kind, or of a decorated function."""
    value = getattr(value, "fget", getattr(value, "__func__", value))
    return getattr(value, "__wrapped__", value) if callable(value) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(part) for item in value.items() for part in item)
    return isinstance(value, PLAIN)


def _are_equal(own: Any, other: Any) -> bool:
    """Return true for equal values; NaN is equal to itself."""
    return bool(own == other) or repr(own) == repr(other)


def _are_same(own: CodeType, other: CodeType) -> bool:
    """Return true if two functions have the same names and constants.

    Their instructions depend on the statements around them: `m.floor` is another one if `m` is
    imported in the same text.
    """
    if any(getattr(own, name) != getattr(other, name) for name in CODE):
        return False
    if len(own.co_consts) != len(other.co_consts):
        return False
    return all(
        _are_same(first, second)
        if isinstance(first, CodeType) and isinstance(second, CodeType)
        else _are_equal(first, second)
        for first, second in zip(own.co_consts, other.co_consts, strict=True)
    )


def _globals(code: CodeType) -> Iterator[str]:
    """Yield the global names that a function uses, and the functions in it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)
