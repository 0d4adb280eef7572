"""Prose linter: checks comments, docstrings, messages and pages against `prose.toml`.

`python tools/prose.py [FILE ...]` prints one line for each finding and fails if there is any;
without files it checks all files that git tracks.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RULES_FILE = Path(__file__).with_name("prose.toml")
SKIPPED = ("tools/prose.toml", "tools/prose.py", "LICENSE", "docs/papers.bib")
"""Files that contain findings on purpose, or that others wrote."""


class Text(NamedTuple):
    """A piece of prose: its first line in the file, and whether it begins a doc comment."""

    line: int
    text: str
    is_doc: bool = False


class Rule(NamedTuple):
    """A rule of `prose.toml`."""

    name: str
    pattern: re.Pattern[str]
    message: str
    docs_only: bool
    bad: str
    good: str


def rules() -> list[Rule]:
    """Read the rules."""
    tables = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    return [
        Rule(
            name,
            re.compile(table["pattern"], 0 if table.get("case") else re.IGNORECASE),
            table["message"],
            table["where"] == "doc",
            table["bad"],
            table["good"],
        )
        for name, table in tables.items()
    ]


CODE_SPAN = re.compile(r"`[^`\n]*`|\]\([^)]*\)|https?://\S+")
QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”]*”")


def without_code(text: str) -> str:
    """Blank out code spans, link targets and quotations."""
    text = CODE_SPAN.sub(lambda span: " " * len(span[0]), text)
    return QUOTED.sub(lambda span: " " * len(span[0]), text)


RUST_COMMENT = re.compile(r"(?:^|\s)(//[/!]?)\s?(.*)$")
RUST_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def rust(source: str) -> Iterator[Text]:
    """Yield comments and string literals with a space in them."""
    last = -1
    for number, line in enumerate(source.splitlines(), 1):
        stripped = line.lstrip()
        if stripped.startswith("//"):
            match = RUST_COMMENT.search(line)
            if match:
                is_doc = match[1] != "//" and last != number - 1
                yield Text(number, match[2], is_doc)
                if match[1] != "//":
                    last = number
            continue
        code, _, comment = line.partition(" // ")
        for literal in RUST_STRING.finditer(code):
            if " " in literal[1]:
                yield Text(number, literal[1])
        if comment:
            yield Text(number, comment)


STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""Tokens of text; from Python 3.12 on, pieces of f-strings are tokens of their own."""


def python(source: str) -> Iterator[Text]:
    """Yield docstrings, comments and string literals with a space in them."""
    tree = ast.parse(source)
    first_lines = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                first_lines.add(statement.lineno)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        start = token.start[0]
        if token.type == tokenize.COMMENT:
            yield Text(start, token.string.lstrip("#! "))
        elif token.type in STRINGS and " " in token.string:
            for offset, line in enumerate(token.string.splitlines()):
                is_doc = offset == 0 and start in first_lines
                yield Text(start + offset, line.strip("rbfRBF\"' "), is_doc)


def markdown(source: str) -> Iterator[Text]:
    """Yield lines outside code blocks."""
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            yield Text(number, line)


READERS = {".rs": rust, ".py": python, ".pyi": python, ".md": markdown}


def findings(file: Path, checked: list[Rule]) -> Iterator[str]:
    """Yield a line for each place in a file that breaks a rule."""
    texts = READERS[file.suffix](file.read_text(encoding="utf-8"))
    for line, text, is_doc in texts:
        prose = without_code(text)
        for rule in checked:
            if (is_doc or not rule.docs_only) and (match := rule.pattern.search(prose)):
                yield f"{file}:{line}: {rule.name}: `{match[0]}`: {rule.message}"


def tracked() -> list[Path]:
    """Return the files to check: all that git tracks and a reader exists for."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    return [ROOT / name for name in listed if Path(name).suffix in READERS and name not in SKIPPED]


def main(arguments: list[str]) -> int:
    """Check the given files, or all."""
    checked = rules()
    files = [Path(name) for name in arguments] or [file for file in tracked() if file.is_file()]
    found = [line for file in files for line in findings(file, checked)]
    for line in found:
        print(line.replace(f"{ROOT}/", ""))
    if found:
        print(f"{len(found)} findings; CONTRIBUTING.md, Style, explains the rules")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
