"""Wording of errors: nearest valid names, and errors of pydantic in terms of a user's file."""

import difflib
from collections.abc import Iterable
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return the nearest of `names` as the end of an error message, or an empty string.

    A name that begins with the word, such as `a->b (cable 1)`, is nearer than all others.
    """
    names = list(names)
    near = [name for name in names if name.startswith(f"{word} (")]
    near = near or difflib.get_close_matches(word, names, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def printable(message: str) -> str:
    """Return a message with escapes in place of control characters, which names may contain."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in message)


MOST_CHOICES = 12
"""Largest number of names that an error lists."""


def some_of(names: Iterable[str]) -> str:
    """Return the distinct names for an error message, `MOST_CHOICES` at most."""
    distinct = list(dict.fromkeys(names))
    more = ", …" if len(distinct) > MOST_CHOICES else ""
    return ", ".join(distinct[:MOST_CHOICES]) + more


def unknown_option(given: Iterable[str], allowed: Iterable[str]) -> str:
    """Return the message about the first option that is not allowed, or an empty string."""
    allowed = list(allowed)
    unknown = next((name for name in given if name not in allowed), None)
    if unknown is None:
        return ""
    hint = did_you_mean(unknown, allowed)
    return f"{unknown}: unknown option{hint} (allowed: {', '.join(allowed)})"


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an optional extra.

    It names the packages themselves, because Sojourn is installed from a file, not from an index.
    """
    ends = (f"extra == '{extra}'", f'extra == "{extra}"')
    required = [line.partition(";") for line in metadata.requires("sojourn") or ()]
    packages = [name.strip() for name, _, marker in required if marker.strip() in ends]
    return "pip install " + " ".join(f"'{package}'" for package in packages)


WORDS = {
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "dataclass_type": "must be a table",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have a length of at least {min_length}",
    "too_long": "must have a length of at most {max_length}",
}
"""Messages in terms of TOML and JSON, by pydantic's type of the error."""


UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def validation_message(error: "ValidationError", form: type[Any]) -> str:
    """Return one line for the first error of a value of the form.

    Unknown keys come first, because a misspelt key causes an error for the missing key too.
    """
    details = error.errors(include_url=False)
    detail = next((item for item in details if item["type"] in UNKNOWN), details[0])
    field = ".".join(map(str, detail["loc"]))
    if detail["type"] in UNKNOWN:
        names = vars(form).get("__annotations__", ()) if len(detail["loc"]) == 1 else ()
        return f"{field}: unknown key{did_you_mean(field, names)}"
    if detail["type"] == "missing":
        return f"missing key `{field}`"
    text = WORDS.get(detail["type"], detail["msg"]).format(**detail.get("ctx", {}))
    text = text.removeprefix("Value error, ").replace("Input should be", "must be")
    # A table would be too long to quote.
    is_table = isinstance(detail["input"], dict)
    quoted = "" if is_table else f", not {repr(detail['input'])[:60]}"
    return ": ".join(filter(None, [field, text + quoted]))


def natural_key(name: str) -> tuple[str, int, str]:
    """Return a sort key that puts `a2` before `a10`."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0), name
