"""How errors are worded: what was probably meant, and what pydantic found, in a user's words."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return the nearest of `names` as the end of an error message, or nothing."""
    near = difflib.get_close_matches(given, list(names), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


WORDS = {
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "dataclass_type": "must be a table",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length} of what it holds",
    "too_long": "must have at most {max_length} of what it holds",
}
"""What is wrong in the words of a user's file instead of Python's, by pydantic's name for it."""


UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def said(error: "ValidationError", form: type[Any]) -> str:
    """Say what is wrong first of all: a name that is misspelt, for it is what is missing too."""
    wrongs = error.errors(include_url=False)
    wrong = next((one for one in wrongs if one["type"] in UNKNOWN), wrongs[0])
    place = ".".join(map(str, wrong["loc"]))
    if wrong["type"] in UNKNOWN:
        names = vars(form).get("__annotations__", ()) if len(wrong["loc"]) == 1 else ()
        return f"{place}: unknown key{did_you_mean(place, names)}"
    if wrong["type"] == "missing":
        return f"there is no `{place}`"
    text = WORDS.get(wrong["type"], wrong["msg"]).format(**wrong.get("ctx", {}))
    text = text.removeprefix("Value error, ").replace("Input should be", "must be")
    given = repr(wrong["input"])
    # Of a whole table the text says enough.
    shown = "" if isinstance(wrong["input"], dict) else f", not {given[:60]}"
    return ": ".join(filter(None, [place, text + shown]))


def natural(name: str) -> tuple[str, int, str]:
    """Return a sort key that puts `a2` before `a10`."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0), name
