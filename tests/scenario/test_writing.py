"""Scenario files that `sojourn` writes."""

from sojourn.scenario.writing import as_toml


def test_scenarios_are_shown_as_toml() -> None:
    text = as_toml({"seed": 1, "workload": {"load": 0.5, "sizes": {"kind": "fixed"}, "q": ["a"]}})
    assert text == 'seed = 1\n\n[workload]\nload = 0.5\nsizes = {kind = "fixed"}\nq = ["a"]'
