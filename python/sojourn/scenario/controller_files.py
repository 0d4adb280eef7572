"""Controllers written in Python, as transports of scenarios.

A scenario holds the text of the file that a class is in, as it does of all files: so results hang
on it, and it travels to other processes and machines. The file is all that travels; what it imports
has to be installed. To read a scenario that names a class runs the class's file.
"""

import ast
import dataclasses
import functools
import hashlib
import inspect
import itertools
import json
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.base.messages import did_you_mean, said
from sojourn.base.paths import PACKAGE
from sojourn.scenario.controller import EVENTS, Controller

KIND = "python"
"""The transport's name in scenarios."""

NAME = re.compile(r"^.+\.py:[A-Za-z_][A-Za-z_0-9]*$")
"""The form of the name of a class in a file."""

MECHANISM = {
    "ecn": "ecn",
    "marks": "marks",
    "notification_interval": "notification_interval",
    "burst": "burst",
    "ack_every": "ack_every",
    "tells_delay": "tells_delay",
    "queue": "designed_queue",
    "host_queue": "designed_host_queue",
    "reliability": "reliability",
}
"""What a class says of the mechanism beside it, and how the core calls it."""

OWN_FIELDS = {"kind", "controller", "parameters", *MECHANISM.values()}
"""The fields of the transport that are no parameters of its class."""

Table = dict[str, Any]


def is_name(value: object) -> bool:
    """Return whether a value names a class in a file, as `gentle.py:Gentle` does."""
    return isinstance(value, str) and NAME.match(value) is not None


def as_transport(value: object, field: str, load: Callable[[str], str]) -> object:
    """Return what a scenario says in a field of a transport, with a class as the core reads it.

    That may be a name such as `gentle.py:Gentle`, by itself or as a table's `kind`, an instance, or
    a table of kind `python`; `load` reads a file. Anything else is returned as it is.
    """
    if isinstance(value, Controller):
        return _of_instance(value, field)
    table = dict(value) if isinstance(value, Mapping) else {"kind": value}
    if is_name(table.get("kind")):
        table |= {"kind": KIND, "controller": table["kind"]}
    if table.get("kind") != KIND:
        return value
    if is_name(table.get("controller")):
        name = str(table["controller"])
        table["controller"] = {"name": name, "text": load(name.rpartition(":")[0])}
    source = table.get("controller")
    # What is as the core has shown it is not checked again: to open a result runs nothing.
    is_whole = table.keys() == OWN_FIELDS
    if is_whole or not (isinstance(source, Mapping) and isinstance(source.get("text"), str)):
        return table
    return _resolved(table, field)


def are_in(scenario: Mapping[str, Any]) -> bool:
    """Return whether a scenario has controllers written in Python."""
    others = scenario.get("transports")
    transports = [scenario.get("transport"), *(others.values() if isinstance(others, dict) else ())]
    return any(isinstance(one, Mapping) and one.get("kind") == KIND for one in transports)


def _of_instance(controller: Controller, field: str) -> Table:
    """Return the transport of an instance, whose class lies in a file."""
    kind = type(controller)
    try:
        file = Path(inspect.getsourcefile(kind) or "")
        text = files.read_text(file, files.MOST_SETTINGS)
    except (OSError, TypeError):
        hint = "in a notebook a cell that begins with `%%writefile` makes one"
        raise ScenarioError(
            f"{field}: the class {kind.__name__} lies in no file, so no other process could read"
            f" it; {hint}"
        ) from None
    source = {"name": f"{file.name}:{kind.__name__}", "text": text}
    given = {one.name: getattr(controller, one.name) for one in dataclasses.fields(kind)}
    return _resolved({"kind": KIND, "controller": source, **given}, field)


def _resolved(table: Mapping[str, Any], field: str) -> Table:
    """Return the transport with all parameters, and what its class says of the mechanism."""
    source = table["controller"]
    kind = class_of(source["name"], source["text"])
    flat = {key: value for key, value in table.items() if key not in OWN_FIELDS}
    given = {**table.get("parameters", {}), **flat}
    by_class = {name: getattr(kind, says) for says, name in MECHANISM.items()}
    own = {key: value for key, value in table.items() if key in OWN_FIELDS}
    if isinstance(own.get("reliability"), Mapping):
        own["reliability"] = {**by_class["reliability"], **own["reliability"]}
    by_class["burst"] = "none" if by_class["burst"] is None else by_class["burst"]
    return {**by_class, **own, "parameters": _checked(kind, given, field)}


def _checked(kind: type[Controller], given: Mapping[str, Any], field: str) -> Table:
    """Return all parameters of a class, some of them given in a field of a scenario."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - a quarter of a second
    from pydantic_core import to_jsonable_python  # noqa: PLC0415

    try:
        # As JSON, for there a text is no number, while a whole number is one.
        made = TypeAdapter(kind).validate_json(json.dumps(given), strict=True)
    except ValidationError as error:
        raise ScenarioError(f"{field}.{said(error, kind)}") from None
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{field}: {error}") from None
    values = {one.name: getattr(made, one.name) for one in dataclasses.fields(kind)}
    return dict(to_jsonable_python(values))


def opened(
    name: str, text: str, parameters: str, field: str
) -> tuple[Callable[[], Controller], set[str]]:
    """Return what makes controllers of a class, and of which events they want to hear.

    `parameters` are JSON, given in a field. It is what the core asks for when a run begins.
    """
    kind = class_of(name, text)
    values = _checked(kind, json.loads(parameters), field)
    hears = {event for event in EVENTS if getattr(kind, event) is not getattr(Controller, event)}
    return functools.partial(kind, **values), hears


@functools.lru_cache(maxsize=64)
def class_of(name: str, text: str) -> type[Controller]:
    """Return the class that a name such as `gentle.py:Gentle` means in a file of this text."""
    file, _, wanted = name.rpartition(":")
    module = _module(file, text)
    known = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Controller) and value is not Controller
    }
    kind = known.get(wanted)
    if kind is None:
        names = f" ({', '.join(known)})" if known else ""
        raise ScenarioError(
            f"{name}: the file has no class `{wanted}` derived from sojourn.Controller"
            f"{did_you_mean(wanted, known)}{names}"
        )
    for field in dataclasses.fields(kind):
        if field.name in OWN_FIELDS or field.name in MECHANISM:
            raise ScenarioError(f"{name}: {field.name}: a parameter cannot have this name")
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ScenarioError(f"{name}: {field.name}: a parameter needs a default")
    if kind.allowance is Controller.allowance:
        raise ScenarioError(
            f"{name}: the class has no `allowance`, which says how much may be sent"
        )
    return kind


_being_loaded: set[str] = set()


def _module(file: str, text: str) -> ModuleType:
    """Run a file as a module of its own, apart from others of its name."""
    digest = hashlib.sha256(f"{file}\n{text}".encode()).hexdigest()[:16]
    module = ModuleType(f"{Path(file).stem}_{digest}")
    if module.__name__ in _being_loaded:
        raise ScenarioError(
            f"{file}: runs a scenario while it is read; that belongs below"
            ' `if __name__ == "__main__":`'
        )
    _being_loaded.add(module.__name__)
    # Dataclasses look for their module there, and tracebacks for its lines here.
    sys.modules[module.__name__] = module
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    except ScenarioError:
        raise
    except SyntaxError as error:
        raise ScenarioError(f"{file}:{error.lineno}: not Python: {error.msg}") from None
    except Exception as error:
        raise ScenarioError(told(error)) from error
    finally:
        _being_loaded.discard(module.__name__)
    return module


def told(error: BaseException) -> str:
    """Say in a line what went wrong in a controller's file, and where."""
    kind = type(error).__name__
    places = [
        f"{frame.filename}:{frame.lineno}: "
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in linecache.cache and not frame.filename.startswith(str(PACKAGE))
    ]
    return f"{places[-1] if places else ''}{kind}: {error}"


def traced(error: BaseException) -> str:
    """Return the traceback of what went wrong in a controller."""
    return "".join(traceback.format_exception(error)).rstrip()


def part(name: str, text: str) -> dict[str, Any]:
    """Return a class with its parameters, as the catalogue has parts."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - a quarter of a second

    kind = class_of(name, text)
    defaults, about = _checked(kind, {}, name), _meanings(text)
    forms = TypeAdapter(kind).json_schema().get("properties", {})
    parameters = [
        {
            "name": field,
            "allowed": _allowed(forms[field]),
            "default": default,
            "about": about.get(field, ""),
        }
        for field, default in defaults.items()
    ]
    return {"name": name, "about": inspect.getdoc(kind) or "", "parameters": parameters}


TYPES = {"number": "a number", "integer": "a whole number", "string": "a text"}
BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}


def _allowed(form: Mapping[str, Any]) -> str:
    """Say what may be given, by its JSON schema."""
    if "enum" in form:
        return f"one of {', '.join(map(json.dumps, form['enum']))}"
    kind = "true or false" if form.get("type") == "boolean" else TYPES.get(form.get("type", ""))
    bounds = [f"{words} {form[key]:g}" for key, words in BOUNDS.items() if key in form]
    return ", ".join([kind or json.dumps(form.get("type", "any")), *bounds])


def _meanings(text: str) -> dict[str, str]:
    """Return the texts that stand below the declarations in a file's classes."""
    meanings = {}
    for node in ast.walk(ast.parse(text)):
        body = node.body if isinstance(node, ast.ClassDef) else []
        for declared, below in itertools.pairwise(body):
            match declared, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=field)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    meanings[field] = " ".join(words.split())
    return meanings
