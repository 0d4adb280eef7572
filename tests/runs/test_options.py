"""Options of wrong types in Python."""

from collections.abc import Callable
from typing import Any

import pytest

import sojourn
from conftest import SCENARIO

API: Any = sojourn
"""The package without its types, which forbid these calls."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: API.run(SCENARIO, threads="2"), "threads: must be a whole number, not '2'"),
        (lambda: API.run(SCENARIO, memory=-1), "memory: must be at least 1 byte, not -1"),
        (lambda: API.run(SCENARIO, memory=True), "memory: must be a whole number, not True"),
        (lambda: API.run(SCENARIO | {3: 1}), "scenario: names must be strings, not 3"),
        (lambda: API.sweep(SCENARIO), "runs: expected a list of pairs"),
        (lambda: API.sweep([SCENARIO]), "runs: expected a list of pairs"),
        (
            lambda: API.comparison(SCENARIO, {"transport": ["dctcp"]}, seeds=2.5),
            "seeds: must be a whole number, not 2.5",
        ),
        (
            lambda: API.comparison(SCENARIO, {"transport": "dctcp"}),
            r"transport: expected a list of values, such as \['dctcp'\]",
        ),
    ],
)
def test_an_option_of_a_wrong_type_is_an_error_in_one_line(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(sojourn.ScenarioError, match=f"^{message}"):
        call()
