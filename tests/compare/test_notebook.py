"""Tests of HTML for notebooks, and of the example notebook."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import sojourn
from conftest import SCENARIO
from sojourn.base import paths
from sojourn.compare import comparison

NOTEBOOK = paths.EXAMPLES / "first_hour.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line."""
    *body, last = ast.parse(source).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_example_notebook_runs_and_returns_tables_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    values = [
        run_cell("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"
    ]
    result, transports, waits, own_controller = values
    page = result._repr_html_()
    assert "flow completion time" in page
    # The picture on the right shows the queue.
    assert "queue bytes" in page
    assert transports.by == "transport"
    # The page has tables, sentences, and two pictures.
    page = transports._repr_html_()
    assert page.count("<svg") == 2
    assert "of dctcp&#x27;s time" in page
    # Every transport has a positive wait in each size of flows.
    assert waits["transport"].unique(maintain_order=True).to_list() == ["dctcp", "timely", "tcp"]
    assert {"all", "≤ 100 KB"} <= set(waits["size"])
    assert (waits["value"] > 0).all()
    assert "Gentle&#x27;s flows up to 100 KB" in own_controller._repr_html_()


@pytest.mark.parametrize(
    ("changes", "pictures"),
    [
        ({}, 1),
        ({"samples": {"interval": "1 us"}}, 1),
        ({"model": "srpt"}, 1),
        ({"workload": "long_lived", "time_limit": "1 ms"}, 0),
        ({"workload": "long_lived", "time_limit": "1 ms", "samples": {"interval": "9 us"}}, 1),
        ({"time_limit": "1 us"}, 0),
        ({"warm_up": "1 ms", "time_limit": "20 ms"}, 0),
    ],
)
def test_every_result_has_html_for_notebooks(changes: dict[str, Any], pictures: int) -> None:
    base = {
        "topology": "link",
        "transport": "tcp",
        "workload": {"kind": "permutation", "size": "10 KB"},
    }
    run = sojourn.Run({"seed": "<1>"}, sojourn.run(base | changes))
    page = run._repr_html_()
    assert page is not None
    assert page.startswith("<b>seed = &lt;1&gt;</b>")
    assert page.count("<svg") == pictures
    # Without the name of a font, columns do not line up in exported pages.
    assert '<pre style="font-family:monospace' in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percentiles": "p99"}, r'^percentiles: expected a list of .*"p99"\], not \'p99\'$'),
        ({"percentiles": []}, r"^percentiles: expected a list .* not \[\]$"),
        ({"percentiles": ["p50", "p101"]}, r"^percentiles: expected a list .*'p101'\]$"),
        ({"against": "swift1"}, r"expected one of dctcp, swift; did you mean `swift`\?$"),
    ],
)
def test_invalid_options_of_a_comparison_are_errors_before_the_runs(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "sweep", None)
    with pytest.raises(sojourn.ScenarioError, match=message):
        sojourn.comparison(SCENARIO, {"transport": ["dctcp", "swift"]}, **options)
