"""Controllers written in Python, as transports of scenarios.

A scenario contains the text of the file that defines the class, as of all files: results depend on
it, and other processes and machines receive it. Modules that the file imports must be installed
there. Reading a scenario that names a class executes the file.
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
from sojourn.base.messages import did_you_mean, validation_message
from sojourn.base.paths import PACKAGE
from sojourn.scenario.controller import EVENTS, Controller

KIND = "python"
"""Name of the transport in scenarios."""

NAME = re.compile(r"^.+\.py:[A-Za-z_][A-Za-z_0-9]*$")
"""Pattern of the name of a class in a file."""

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
"""Class attributes that set options of sender and receiver, and the core's names of them."""

OWN_FIELDS = {"kind", "controller", "parameters", *MECHANISM.values()}
"""Fields of the transport that are not parameters of the class."""

Table = dict[str, Any]


def is_name(value: object) -> bool:
    """Return true if a value names a class in a file, such as `gentle.py:Gentle`."""
    return isinstance(value, str) and NAME.match(value) is not None


def as_transport(value: object, field: str, load: Callable[[str], str]) -> object:
    """Return the value of a transport's field with a Python controller in the core's form.

    A controller is a name such as `gentle.py:Gentle`, alone or as the `kind` of a table, an
    instance, or a table of kind `python`; `load` returns the text of a file. Other values are
    returned unchanged.
    """
    if isinstance(value, Controller):
        return _instance_transport(value, field)
    table = dict(value) if isinstance(value, Mapping) else {"kind": value}
    if is_name(table.get("kind")):
        table |= {"kind": KIND, "controller": table["kind"]}
    if table.get("kind") != KIND:
        return value
    if is_name(table.get("controller")):
        name = str(table["controller"])
        table["controller"] = {"name": name, "text": load(name.rpartition(":")[0])}
    source = table.get("controller")
    # A complete table, as in a result, is not checked again: opening a result executes no code.
    is_complete = table.keys() == OWN_FIELDS
    if is_complete or not (isinstance(source, Mapping) and isinstance(source.get("text"), str)):
        return table
    return _complete_transport(table, field)


def has_controllers(scenario: Mapping[str, Any]) -> bool:
    """Return true if a scenario uses controllers written in Python."""
    others = scenario.get("transports")
    transports = [scenario.get("transport"), *(others.values() if isinstance(others, dict) else ())]
    return any(isinstance(item, Mapping) and item.get("kind") == KIND for item in transports)


def _instance_transport(controller: Controller, field: str) -> Table:
    """Return the transport of an instance, whose class must be defined in a file."""
    kind = type(controller)
    try:
        file = Path(inspect.getsourcefile(kind) or "")
        text = files.read_text(file, files.MAX_SETTINGS_BYTES)
    except (OSError, TypeError):
        raise ScenarioError(
            f"{field}: the class {kind.__name__} must be defined in a file, for other processes;"
            " in a notebook `%%writefile` writes a cell to a file"
        ) from None
    source = {"name": f"{file.name}:{kind.__name__}", "text": text}
    values = {item.name: getattr(controller, item.name) for item in dataclasses.fields(kind)}
    return _complete_transport({"kind": KIND, "controller": source, **values}, field)


def _complete_transport(table: Mapping[str, Any], field: str) -> Table:
    """Return the transport with all parameters, and the options that its class sets."""
    source = table["controller"]
    kind = load_class(source["name"], source["text"])
    flat = {key: value for key, value in table.items() if key not in OWN_FIELDS}
    parameters = {**table.get("parameters", {}), **flat}
    by_class = {name: getattr(kind, attribute) for attribute, name in MECHANISM.items()}
    own = {key: value for key, value in table.items() if key in OWN_FIELDS}
    if isinstance(own.get("reliability"), Mapping):
        own["reliability"] = {**by_class["reliability"], **own["reliability"]}
    by_class["burst"] = "none" if by_class["burst"] is None else by_class["burst"]
    return {**by_class, **own, "parameters": _checked_parameters(kind, parameters, field)}


def _checked_parameters(kind: type[Controller], parameters: Mapping[str, Any], field: str) -> Table:
    """Return all parameters of a class: those of a scenario's field, and defaults."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - import takes 0.25 s
    from pydantic_core import to_jsonable_python  # noqa: PLC0415

    try:
        # Strict validation of JSON rejects texts as numbers, but accepts integers as floats.
        controller = TypeAdapter(kind).validate_json(json.dumps(parameters), strict=True)
    except ValidationError as error:
        raise ScenarioError(f"{field}.{validation_message(error, kind)}") from None
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{field}: {error}") from None
    values = {item.name: getattr(controller, item.name) for item in dataclasses.fields(kind)}
    return dict(to_jsonable_python(values))


def load_factory(
    name: str, text: str, parameters: str, field: str
) -> tuple[Callable[[], Controller], set[str]]:
    """Return a factory of controllers of a class, and the names of the events that it handles.

    The core calls this function at the start of a run. `parameters` is JSON; `field` is the field
    that errors name.
    """
    kind = load_class(name, text)
    values = _checked_parameters(kind, json.loads(parameters), field)
    events = {event for event in EVENTS if getattr(kind, event) is not getattr(Controller, event)}
    return functools.partial(kind, **values), events


@functools.lru_cache(maxsize=64)
def load_class(name: str, text: str) -> type[Controller]:
    """Return the class that a name such as `gentle.py:Gentle` denotes in a file with this text."""
    file, _, class_name = name.rpartition(":")
    module = _load_module(file, text)
    classes = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Controller) and value is not Controller
    }
    kind = classes.get(class_name)
    if kind is None:
        names = f" ({', '.join(classes)})" if classes else ""
        raise ScenarioError(
            f"{name}: the file has no class `{class_name}` derived from sojourn.Controller"
            f"{did_you_mean(class_name, classes)}{names}"
        )
    for field in dataclasses.fields(kind):
        if field.name in OWN_FIELDS or field.name in MECHANISM:
            raise ScenarioError(f"{name}: {field.name}: a parameter cannot have this name")
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ScenarioError(f"{name}: {field.name}: a parameter needs a default")
    if kind.allowance is Controller.allowance:
        raise ScenarioError(f"{name}: the class has no method `allowance`")
    return kind


_loading_modules: set[str] = set()


def _load_module(file: str, text: str) -> ModuleType:
    """Execute a file as a module whose name contains a hash of the text."""
    digest = hashlib.sha256(f"{file}\n{text}".encode()).hexdigest()[:16]
    module = ModuleType(f"{Path(file).stem}_{digest}")
    if module.__name__ in _loading_modules:
        raise ScenarioError(
            f"{file}: runs a scenario when it is imported; move that code below"
            ' `if __name__ == "__main__":`'
        )
    _loading_modules.add(module.__name__)
    # `dataclasses` reads `sys.modules`, and `traceback` reads `linecache`.
    sys.modules[module.__name__] = module
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    except ScenarioError:
        raise
    except SyntaxError as error:
        raise ScenarioError(f"{file}:{error.lineno}: not Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise ScenarioError(format_error(error)) from error
    finally:
        _loading_modules.discard(module.__name__)
    return module


def format_error(error: BaseException) -> str:
    """Return one line with the place and the message of an error in a controller's file.

    The core calls this function.
    """
    kind = type(error).__name__
    locations = [
        f"{frame.filename}:{frame.lineno}: "
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in linecache.cache and not frame.filename.startswith(str(PACKAGE))
    ]
    return f"{locations[-1] if locations else ''}{kind}: {error}"


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an error in a controller; the core calls this function."""
    return "".join(traceback.format_exception(error)).rstrip()


def part(name: str, text: str) -> dict[str, Any]:
    """Return the catalogue entry of a class, with its parameters."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - import takes 0.25 s

    kind = load_class(name, text)
    defaults, descriptions = _checked_parameters(kind, {}, name), _descriptions(text)
    schemas = TypeAdapter(kind).json_schema().get("properties", {})
    parameters = [
        {
            "name": field,
            "allowed": _allowed_values(schemas[field]),
            "default": default,
            "about": descriptions.get(field, ""),
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


def _allowed_values(schema: Mapping[str, Any]) -> str:
    """Return the allowed values of a JSON schema in words."""
    if "enum" in schema:
        return f"one of {', '.join(map(json.dumps, schema['enum']))}"
    kind = "true or false" if schema.get("type") == "boolean" else TYPES.get(schema.get("type", ""))
    bounds = [f"{words} {schema[key]:g}" for key, words in BOUNDS.items() if key in schema]
    return ", ".join([kind or json.dumps(schema.get("type", "any")), *bounds])


def _descriptions(text: str) -> dict[str, str]:
    """Return the string literals below the declarations in a file's classes, by name."""
    descriptions = {}
    for node in ast.walk(ast.parse(text)):
        body = node.body if isinstance(node, ast.ClassDef) else []
        for declaration, literal in itertools.pairwise(body):
            match declaration, literal:
                case (
                    ast.AnnAssign(target=ast.Name(id=field)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    descriptions[field] = " ".join(words.split())
    return descriptions
