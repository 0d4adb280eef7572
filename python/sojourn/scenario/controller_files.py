"""Controllers written in Python, as transports of scenarios.

A scenario contains the text of the file that defines the class, as of all files: results depend on
it, and other processes and machines receive it. So do the modules next to it that it imports, and
the files that it lists; other modules must be installed there. Reading a scenario that names a
class executes the file; each run executes it anew (`controller_source`).
"""

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import re
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sojourn._core import ScenarioError
from sojourn.base import files
from sojourn.base.messages import did_you_mean, validation_message
from sojourn.scenario import controller_cells, controller_source
from sojourn.scenario.controller import EVENTS, Controller
from sojourn.scenario.controller_cells import SourceError
from sojourn.scenario.controller_changes import find_change
from sojourn.scenario.controller_source import Load, Source
from sojourn.scenario.conversion import plain_tree
from sojourn.scenario.credit_scheduler import HANDLERS, CreditScheduler

if TYPE_CHECKING:
    from pydantic import TypeAdapter

KIND = "python"
"""Name of the transport in scenarios."""

NAME = re.compile(r"^.+\.py:[A-Za-z_][A-Za-z_0-9]*$")
"""Pattern of the name of a class in a file."""

MECHANISM = (
    "ecn",
    "marks",
    "notification_interval",
    "burst",
    "ack_every",
    "tells_delay",
    "telemetry",
    "credit_scheduler",
    "announces",
    "priorities",
    "queue",
    "host_queue",
    "reliability",
)
"""Class attributes that set options of sender and receiver."""

OWN_FIELDS = {"kind", "controller", "files", "parameters", *MECHANISM}
"""Fields of the transport that are not parameters of the class."""

Table = dict[str, Any]


def is_name(value: object) -> bool:
    """Return true if a value names a class in a file, such as `gentle.py:Gentle`."""
    return isinstance(value, str) and NAME.match(value) is not None


def as_transport(
    value: object, field: str, load: Load, exists: Callable[[str], bool] = lambda _: False
) -> object:
    """Return the value of a transport's field with a Python controller in the core's form.

    A controller is a name such as `gentle.py:Gentle`, a class or an instance, alone or as the
    `kind` of a table, or a table of kind `python`; `load` returns the content of a file, if it
    `exists`. Other values are returned unchanged.
    """
    table = dict(value) if isinstance(value, Mapping) else {"kind": value}
    kind = table.get("kind")
    if isinstance(kind, Controller) or _is_class(kind):
        origin, values = _source_of(kind, field)
        table = {**values, **table, **origin, "kind": KIND}
    elif is_name(kind):
        table |= {"kind": KIND, "controller": kind}
    elif isinstance(kind, str) and kind.endswith(".py"):
        raise ScenarioError(f"{field}: a controller is FILE:CLASS, such as gentle.py:Gentle")
    if table.get("kind") != KIND:
        return value
    if is_name(table.get("controller")):
        table |= read_source(str(table["controller"]), load, exists)
    source = table.get("controller")
    # A complete table, as in a result, is not checked again: opening a result executes no code.
    is_complete = table.keys() == OWN_FIELDS
    if is_complete or not (isinstance(source, Mapping) and isinstance(source.get("text"), str)):
        return table
    return _complete_transport(table, field)


def as_written(value: Any) -> Any:
    """Return a transport of kind `python` by the name of its class, with what it changes.

    Other values are returned unchanged.
    """
    source = value.get("controller") if isinstance(value, Mapping) else None
    if not isinstance(source, Mapping) or value.get("kind") != KIND:
        return value
    own = {key: value[key] for key in ("kind", "controller", "files") if key in value}
    by_class = _complete_transport(own, KIND)
    table = {key: item for key, item in value.items() if by_class.get(key) != item}
    for name in {"reliability", "parameters"} & table.keys():
        defaults = by_class[name]
        table[name] = {key: x for key, x in table[name].items() if defaults.get(key) != x}
    return {"kind": source["name"], **table.pop("parameters", {}), **table}


def read_source(name: str, load: Load, exists: Callable[[str], bool]) -> Table:
    """Return the fields `controller` and `files` of the transport of a name `gentle.py:Gentle`."""
    file = name.rpartition(":")[0]
    text = controller_source.decoded_module(load(file), file)
    return _source(name, text, load, exists)


def _source(name: str, text: str, load: Load, exists: Callable[[str], bool]) -> Table:
    found = controller_source.find_files(name.rpartition(":")[0], text, load, exists)
    return {"controller": {"name": name, "text": text}, "files": list(found)}


def read_neighbours(file: Path, text: str) -> list[str]:
    """Return the names of the files next to a Python file that its text imports or lists."""
    found = controller_source.find_files(file.name, text, *_access(file.parent))
    return [item["name"] for item in found]


def has_controllers(scenario: Mapping[str, Any]) -> bool:
    """Return true if a scenario uses controllers written in Python."""
    others = scenario.get("transports")
    transports = [scenario.get("transport"), *(others.values() if isinstance(others, dict) else ())]
    return any(isinstance(item, Mapping) and item.get("kind") == KIND for item in transports)


def _is_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Controller)


def _source_of(controller: Any, field: str) -> tuple[Table, Table]:
    """Return the source of a class or instance, from its file or cell, and its values."""
    kind = controller if isinstance(controller, type) else type(controller)
    if kind.__qualname__ != kind.__name__:
        raise ScenarioError(
            f"{field}: the class {kind.__qualname__} must be at the top level of a file or cell;"
            " make what it takes from around it a parameter"
        )
    try:
        file = Path(inspect.getsourcefile(kind) or "")
    except (OSError, TypeError):
        file = Path()
    try:
        if file.is_file():
            source = read_source(f"{file.name}:{kind.__name__}", *_access(file.parent))
        else:
            source = _source_of_cell(kind)
    except SourceError as error:
        raise ScenarioError(
            f"{field}: the class {kind.__name__} cannot be run in other processes: {error};"
            " `%%writefile gentle.py` writes a cell to a file"
        ) from None
    except OSError as error:
        raise ScenarioError(f"{field}: cannot read `{error.filename}`: {error.strerror}") from None
    origin = source["controller"]
    executed = load_class(origin["name"], origin["text"], _pairs(source["files"]))
    if change := find_change(kind, executed):
        raise ScenarioError(
            f"{field}: a run executes the text of {origin['name']}, and {change}; make it a"
            " parameter, or load the file again"
        )
    if isinstance(controller, type):
        return source, {}
    names = [item.name for item in dataclasses.fields(kind)]
    return source, {name: getattr(controller, name) for name in names}


def _source_of_cell(kind: type) -> Table:
    """Return the source of a class in a cell; files next to it are in the current folder."""
    name = f"{controller_cells.FILE}:{kind.__name__}"
    return _source(name, controller_cells.source(kind), *_access(Path()))


def _access(folder: Path) -> tuple[Load, Callable[[str], bool]]:
    """Return functions that read a file in a folder, and that return true if it exists."""

    def load(name: str) -> bytes:
        return files.read_bytes(folder / name, files.MAX_DATA_BYTES)

    return load, lambda name: (folder / name).is_file()


def _complete_transport(table: Mapping[str, Any], field: str) -> Table:
    """Return the transport with all parameters, and the options that its class sets."""
    source, given = table["controller"], table.get("files", [])
    kind = load_class(source["name"], source["text"], _pairs(given))
    flat = {key: value for key, value in table.items() if key not in OWN_FIELDS}
    parameters = {**table.get("parameters", {}), **flat}
    by_class = {name: getattr(kind, name) for name in MECHANISM}
    own = {key: value for key, value in table.items() if key in OWN_FIELDS}
    if isinstance(own.get("reliability"), Mapping):
        own["reliability"] = {**by_class["reliability"], **own["reliability"]}
    scheduler = kind.credit_scheduler
    by_class["burst"] = "none" if by_class["burst"] is None else by_class["burst"]
    by_class["credit_scheduler"] = "none" if scheduler is None else scheduler.__name__
    if own.get("credit_scheduler", by_class["credit_scheduler"]) != by_class["credit_scheduler"]:
        message = f"the class sets it to `{by_class['credit_scheduler']}`"
        raise ScenarioError(f"{field}.credit_scheduler: {message}")
    checked = _checked_parameters(kind, parameters, field)
    return {**by_class, **own, "files": given, "parameters": checked}


def _pairs(given: Sequence[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((file["name"], file["text"]) for file in given)


def _checked_parameters(kind: type[Controller], parameters: Mapping[str, Any], field: str) -> Table:
    """Return all parameters of a class: those of a scenario's field, and defaults."""
    from pydantic import ValidationError  # noqa: PLC0415 - import takes 0.25 s
    from pydantic_core import to_jsonable_python  # noqa: PLC0415

    # TOML has no null: `none` stands for it, as in the core's fields.
    optional = {item.name for item in dataclasses.fields(kind) if item.default is None}
    try:
        parameters = {
            name: None if value == "none" and name in optional else value
            for name, value in plain_tree(parameters, field).items()
        }
        # Strict validation of JSON rejects texts as numbers, but accepts integers as floats.
        controller = _adapter(cast("Hashable", kind)).validate_json(
            json.dumps(parameters), strict=True
        )
    except ValidationError as error:
        raise ScenarioError(f"{field}.{validation_message(error, kind)}") from None
    except ScenarioError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ScenarioError(f"{field}: {error}") from None
    values = {item.name: getattr(controller, item.name) for item in dataclasses.fields(kind)}
    for name, value in values.items():
        try:
            values[name] = to_jsonable_python(value)
        except ValueError:
            raise _wrong_type(kind, name, type(value).__name__) from None
    return values


@functools.lru_cache(maxsize=64)
def _adapter(kind: Hashable) -> "TypeAdapter[Any]":
    """Return pydantic's validator of the parameters of a class."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - import takes 0.25 s

    def build(form: Any) -> "TypeAdapter[Any]":
        adapter = TypeAdapter(form)
        # Checked here for `part`; `_checked_parameters` checks defaults.
        with warnings.catch_warnings(action="ignore"):
            adapter.json_schema()
        return adapter

    try:
        return build(kind)
    except Exception as error:
        for item in dataclasses.fields(cast("type[Controller]", kind)):
            try:
                build(item.type)
            except Exception:
                raise _wrong_type(kind, item.name, _type_name(item.type)) from None
        raise ScenarioError(f"{_type_name(kind)}: {' '.join(str(error).split())}") from None


def _type_name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _wrong_type(kind: object, name: str, found: str) -> ScenarioError:
    allowed = "a number, a string, true or false, a list or a table"
    return ScenarioError(f"{_type_name(kind)}.{name}: a parameter must be {allowed}, not {found}")


def load_factory(
    name: str, text: str, files: Sequence[tuple[str, str]], parameters: str, field: str
) -> tuple[
    Callable[[], Controller], set[str], tuple[Callable[[], CreditScheduler], set[str]] | None
]:
    """Return a factory of controllers of a class, and the names of the events that it handles.

    The third item is the same of its credit schedulers, or `None`. The core calls this function at
    the start of a run. The source is executed anew, so that no state of its modules remains from an
    earlier run. `parameters` is JSON; `field` is the field that errors name.
    """
    checked = load_class(name, text, tuple(files))
    values = _checked_parameters(checked, json.loads(parameters), field)
    kind = _load_class(name, Source(name.rpartition(":")[0], text, tuple(files)))
    controllers = functools.partial(kind, **values)
    schedulers = None
    if (scheduler := kind.credit_scheduler) is not None:
        defined = _defined(scheduler, CreditScheduler, HANDLERS)
        schedulers = functools.partial(scheduler, controllers()), defined
    return controllers, _defined(kind, Controller, EVENTS), schedulers


def _defined(kind: type, base: type, names: Sequence[str]) -> set[str]:
    """Return the names of methods of `base` that a class derived from it defines anew."""
    return {name for name in names if getattr(kind, name) is not getattr(base, name)}


@functools.lru_cache(maxsize=64)
def load_class(name: str, text: str, files: tuple[tuple[str, str], ...] = ()) -> type[Controller]:
    """Return the class that a name such as `gentle.py:Gentle` denotes, to check and describe it."""
    return _load_class(name, Source(name.rpartition(":")[0], text, files))


def _load_class(name: str, source: Source) -> type[Controller]:
    class_name = name.rpartition(":")[2]
    classes: dict[str, type[Controller]] = {
        key: value
        for key, value in vars(controller_source.execute(source)).items()
        if _is_class(value) and value is not Controller
    }
    kind = classes.get(class_name)
    if kind is None:
        names = f" ({', '.join(classes)})" if classes else ""
        raise ScenarioError(
            f"{name}: the file has no class `{class_name}` derived from sojourn.Controller"
            f"{did_you_mean(class_name, classes)}{names}"
        )
    for field in dataclasses.fields(kind):
        if field.name in OWN_FIELDS:
            raise ScenarioError(f"{name}: {field.name}: a parameter cannot have this name")
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ScenarioError(f"{name}: {field.name}: a parameter needs a default")
    if isinstance(kind.files, str):
        raise ScenarioError(
            f'{name}: files: must be a tuple of names, such as ("{kind.files}",), not a name'
        )
    _check_names(name, kind, Controller, EVENTS)
    for file in kind.files:
        if file not in dict(source.files):
            raise ScenarioError(f"{name}: files: `{file}` must be a literal in the class")
    if kind.allowance is Controller.allowance:
        raise ScenarioError(f"{name}: the class has no method `allowance`")
    _check_methods(name, kind, Controller, ("on_start", "allowance", *EVENTS))
    defined = _defined(kind, Controller, EVENTS)
    for method, is_called, needed in (
        ("on_timer", "next_timer" in defined, "the method `next_timer`, which sets the time"),
        ("on_credit", kind.credit_scheduler, "a `credit_scheduler`"),
        (
            "header",
            kind.credit_scheduler or kind.priorities != 1,
            "`priorities` above 1, or a `credit_scheduler`",
        ),
    ):
        if method in defined and not is_called:
            raise ScenarioError(f"{name}: {method}: needs {needed}")
    if kind.credit_scheduler is not None:
        _check_scheduler(name, kind.credit_scheduler)
    return kind


def _check_scheduler(name: str, scheduler: object) -> None:
    """Raise `ScenarioError` if the credit scheduler of a class is not one."""
    if not (isinstance(scheduler, type) and issubclass(scheduler, CreditScheduler)):
        raise ScenarioError(
            f"{name}: credit_scheduler: must be a class derived from sojourn.CreditScheduler"
        )
    name = f"{name.rpartition(':')[0]}:{scheduler.__name__}"
    _check_names(name, scheduler, CreditScheduler, HANDLERS)
    if scheduler.next_credit is CreditScheduler.next_credit:
        raise ScenarioError(f"{name}: the class has no method `next_credit`")
    _check_methods(name, scheduler, CreditScheduler, ("on_start", "next_credit", *HANDLERS))


def _check_methods(name: str, kind: type, base: type, methods: Sequence[str]) -> None:
    """Raise `ScenarioError` if a method cannot be called as that of `base`."""
    for method in methods:
        function = getattr(kind, method)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise ScenarioError(f"{name}: {method}: must not be `async`")
        if inspect.isgeneratorfunction(function):
            raise ScenarioError(f"{name}: {method}: must not contain `yield`")
        expected = list(inspect.signature(getattr(base, method)).parameters)
        try:
            inspect.signature(function).bind(*expected)
        except TypeError:
            raise ScenarioError(
                f"{name}: {method}: must have the parameters ({', '.join(expected)})"
            ) from None


def _check_names(name: str, kind: type, base: type, events: Sequence[str]) -> None:
    """Raise `ScenarioError` for unknown events, and for names of `base` in another form.

    Such a method is never called, and such an option has no effect.
    """
    known = {_plain(each): each for each in dir(base) if not each.startswith("_")}
    own = (each for other in kind.__mro__ if other not in base.__mro__ for each in vars(other))
    for each in own:
        meant = known.get(_plain(each), each)
        if each.startswith("_") or hasattr(base, each):
            continue
        if meant != each:
            raise ScenarioError(f"{name}: {each}: did you mean `{meant}`?")
        if each.startswith("on_"):
            listed = [event for event in ("on_start", *events) if event.startswith("on_")]
            hint = did_you_mean(each, listed)
            raise ScenarioError(
                f"{name}: {each}: unknown event{hint} (events: {', '.join(listed)})"
            )


def _plain(name: str) -> str:
    return name.lower().replace("_", "").removesuffix("s")


def part(name: str, text: str, files: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """Return the catalogue entry of a class, with its parameters."""
    kind = load_class(name, text, files)
    defaults, descriptions = _checked_parameters(kind, {}, name), _descriptions(text)
    schemas = _adapter(cast("Hashable", kind)).json_schema().get("properties", {})
    parameters = [
        {
            "name": field,
            "allowed": _allowed_values(schemas[field]),
            "default": "none" if default is None else default,
            "about": descriptions.get(field, ""),
        }
        for field, default in defaults.items()
    ]
    about = inspect.cleandoc(kind.__doc__ or "")
    return {"name": name, "about": about, "parameters": parameters}


def read_part(name: str) -> dict[str, Any]:
    """Return the catalogue entry of a class such as `gentle.py:Gentle` in the current folder."""
    source = read_source(name, *_access(Path()))
    return part(name, source["controller"]["text"], _pairs(source["files"]))


TYPES = {"number": "a number", "integer": "a whole number", "string": "a string"}
BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}


def _allowed_values(schema: Mapping[str, Any]) -> str:
    """Return the allowed values of a JSON schema in words."""
    if "anyOf" in schema:
        return " or ".join(map(_allowed_values, schema["anyOf"]))
    if schema.get("type") == "null":
        return "none"
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
