"""Source of a controller in Python: its file, modules next to it, and the files that it reads.

A run depends on all of them, so a scenario contains their content. The source is executed anew for
each run, in a copy of its folder that contains nothing else: a module keeps no state from one run
to the next, and a file that the scenario lacks cannot be read by its place.
"""

import ast
import atexit
import base64
import builtins
import functools
import hashlib
import linecache
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from sojourn._core import ScenarioError

FILES = "files"
"""Class attribute that lists the files which a controller reads."""

BASE64 = "base64,"
"""Prefix of the text of a file that is not UTF-8 text, or whose text begins like this."""

Load = Callable[[str], bytes]
"""Function that returns the content of a file, given its name relative to the scenario."""


@dataclass(frozen=True)
class Source:
    """File of a controller, and files in its folder as pairs of name and encoded text."""

    file: str
    text: str
    files: tuple[tuple[str, str], ...] = ()

    @functools.cached_property
    def digest(self) -> str:
        """Hash of everything that an execution of the source depends on."""
        parts = [self.file, self.text, *(part for file in self.files for part in file)]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(f"{len(part)}\n".encode() + part.encode(errors="surrogatepass"))
        return digest.hexdigest()[:16]


def find_files(file: str, text: str, load: Load, exists: Callable[[str], bool]) -> Iterator[Any]:
    """Yield `{name, text}` of imported modules next to a controller, and of the files it lists.

    Names are relative to the folder of the controller.
    """
    folder = Path(file).parent
    pending, found = [text], {Path(file).name}
    while pending:
        tree = _parsed(pending.pop())
        imports = {f"{name}.py" for name in _imports(tree) if "." not in name}
        modules = {name for name in imports if exists(str(folder / name))}
        for name in sorted(_imports(tree)):
            top, _, rest = name.partition(".")
            parts = ["__init__.py", *([f"{rest.replace('.', '/')}.py"] if rest else [])]
            if any(exists(str(folder / top / part)) for part in parts):
                raise ScenarioError(
                    f"{file}: imports the folder `{top}`; of the files next to a controller, a"
                    f" scenario contains only modules such as {top}.py, and those in `{FILES}`"
                )
        for name in sorted(modules - found):
            module = decoded_module(load(str(folder / name)), name)
            pending.append(module)
            yield {"name": name, "text": module}
        listed = set(_listed(tree)) - modules
        for name in sorted(listed - found):
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ScenarioError(f"{file}: {FILES}: must be in the folder of {file}, not {name}")
            content = load(str(folder / name))
            is_module = name.endswith(".py")
            yield {
                "name": name,
                "text": decoded_module(content, name) if is_module else _encoded(content),
            }
        found |= modules | listed


def _parsed(text: str) -> ast.AST:
    """Return the syntax tree; that of an empty file for an error, which the execution reports."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the modules that the statements `import` and `from` name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def _listed(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in the literals that classes assign to `files`."""
    for node in ast.walk(tree):
        for statement in node.body if isinstance(node, ast.ClassDef) else ():
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            value = getattr(statement, "value", None)
            if FILES in names and isinstance(value, ast.Tuple | ast.List):
                for item in value.elts:
                    if isinstance(item, ast.Constant) and isinstance(item.value, str):
                        yield item.value


def decoded_module(content: bytes, name: str) -> str:
    """Return the text of a Python file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{name}: not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _encoded(content: bytes) -> str:
    """Return the content of any file as a text."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = BASE64
    return BASE64 + base64.b64encode(content).decode() if text.startswith(BASE64) else text


def _content(name: str, text: str) -> bytes:
    """Return the content of a file."""
    is_encoded = text.startswith(BASE64) and not name.endswith(".py")
    return base64.b64decode(text.removeprefix(BASE64)) if is_encoded else text.encode()


_loading: dict[tuple[str, int], bool] = {}
"""Sources that are being executed, by digest and thread: whether they have run themselves."""


def execute(source: Source) -> ModuleType:
    """Execute a source; return its module, which shares no module with other executions."""
    loading = source.digest, threading.get_ident()
    runs_itself = ScenarioError(
        f"{source.file}: runs a scenario when it is imported; move that code below"
        ' `if __name__ == "__main__":`'
    )
    if loading in _loading:
        _loading[loading] = True
        raise runs_itself
    _loading[loading] = False
    try:
        module = _Modules(source).main()
        # Code that catches the error would otherwise run itself again in the run, without end.
        if _loading[loading]:
            raise runs_itself
        return module
    except ScenarioError:
        raise
    except SyntaxError as error:
        line = "" if error.lineno is None else f":{error.lineno}"
        name = error.filename or source.file
        raise ScenarioError(f"{name}{line}: not Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise ScenarioError(format_error(error)) from error
    finally:
        del _loading[loading]


class _Modules:
    """Modules of one execution of a source, by name."""

    def __init__(self, source: Source) -> None:
        self._source, self._folder = source, _copied(source)
        self._texts = {
            name.removesuffix(".py"): (str(Path(source.file).with_name(name)), text)
            for name, text in source.files
            if name.endswith(".py") and "/" not in name
        }
        self._modules: dict[str, ModuleType] = {}
        # The statement `import` calls the function of this name among the builtins of its module.
        self._builtins = vars(builtins) | {"__import__": self._import}
        # The arguments of this process belong to no scenario.
        self._sys = ModuleType("sys")
        vars(self._sys).update(vars(sys), argv=[source.file])

    def main(self) -> ModuleType:
        """Execute the file of the controller, and return its module."""
        return self._execute(Path(self._source.file).stem, self._source.file, self._source.text)

    def _execute(self, name: str, file: str, text: str) -> ModuleType:
        module = ModuleType(f"{name}_{self._source.digest}")
        module.__file__ = str(self._folder / Path(file).name)
        vars(module)["__builtins__"] = self._builtins
        # In place before it is executed, because modules may import each other.
        self._modules[name] = module
        # `dataclasses` reads `sys.modules`, and `traceback` reads `linecache`.
        sys.modules[module.__name__] = module
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
        return module

    def _import(
        self,
        name: str,
        scope: Any = None,
        local: Any = None,
        names: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and name in self._texts:
            return self._modules.get(name) or self._execute(name, *self._texts[name])
        if level == 0 and name == "sys":
            return self._sys
        return __import__(name, scope, local, names, level)


@functools.lru_cache(maxsize=64)
def _copied(source: Source) -> Path:
    """Return a folder that contains the files of a source; it is removed when the process ends."""
    folder = _copies() / source.digest
    for name, text in (Path(source.file).name, source.text), *source.files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_content(name, text))
    return folder


@functools.cache
def _copies() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="sojourn-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def format_error(error: BaseException) -> str:
    """Return one line with the place and the message of an error in a controller's file.

    The core calls this function. An error in the result of a method has the place of the method.
    """
    locations = [
        f"{frame.filename}:{frame.lineno}: "
        for frame in traceback.extract_tb(error.__traceback__)
        if _is_controller(frame.filename)
    ]
    code = getattr(getattr(error, "method", None), "__code__", None)
    if code and not locations and _is_controller(code.co_filename):
        locations = [f"{code.co_filename}:{code.co_firstlineno}: "]
    message = f"{locations[-1] if locations else ''}{type(error).__name__}: {error}"
    if isinstance(error, FileNotFoundError) and _copies() in Path(str(error.filename)).parents:
        message += f"; list the files that a controller reads in its attribute `{FILES}`"
    return message


def _is_controller(file: str) -> bool:
    """Return true for a file of a controller, which alone has lines without a time."""
    entry = linecache.cache.get(file, ())
    return len(entry) > 1 and entry[1] is None


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an error in a controller; the core calls this function."""
    return "".join(traceback.format_exception(error)).rstrip()
