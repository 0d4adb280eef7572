"""Controllers in cells of notebooks, and changes of classes that their texts lack."""

import contextlib
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sojourn
from sojourn._core import ScenarioError

ONE: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "link", "rate": "1 Gbps", "delay": "100 us"},
    "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "200 KB"}]},
    "time_limit": "1 s",
}

CELLS = """
import math as m
from dataclasses import dataclass
import sojourn
GAIN, TABLE = 0.5, [1e4, 2e4]
def half(x):
    return x * GAIN if x < 1 else half(1 / x) * x * x
def traced(cls):
    return cls
===
@traced
class Mine(sojourn.Controller):
    gain: float = GAIN
    def allowance(self):
        table = [m.floor(each) for each in TABLE]
        return half(table[1]) * self.gain
raise SystemExit("a run")
===
import numpy as np
OPEN = open
WEIGHTS = np.ones(3)
class Weighted(sojourn.Controller):
    def allowance(self):
        return float(WEIGHTS.sum())
class Local(sojourn.Controller):
    def allowance(self):
        return later + len(str(OPEN))
"""


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module whose code is in cells, like that of a notebook."""
    module = ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", module)
    # The entries of later cells are removed as well.
    monkeypatch.setattr(linecache, "cache", dict(linecache.cache))
    for cell in CELLS.split("===\n"):
        with contextlib.suppress(SystemExit):
            execute_cell(module, cell)
    return module


def execute_cell(module: ModuleType, cell: str) -> None:
    """Execute a cell as notebooks do."""
    file = f"<cell {len(linecache.cache)}>"
    linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
    exec(compile(cell, file, "exec"), vars(module))


def test_a_class_in_a_cell_is_a_transport_with_what_it_uses(notebook: ModuleType) -> None:
    transport = sojourn.check(ONE | {"transport": notebook.Mine(gain=0.25)})["transport"]
    assert transport["parameters"] == {"gain": 0.25}
    text = transport["controller"]["text"]
    for used in ("import math as m", "TABLE = [10000.0, 20000.0]", "def half(x)", "@traced"):
        assert used in text
    for unused in ("dataclass", "a run", "OPEN"):
        assert unused not in text
    flows = sojourn.run(ONE | {"transport": notebook.Mine}).flows
    assert flows["outcome"].to_list() == ["finished"]


def test_a_class_in_a_cell_that_uses_other_values_is_an_error(notebook: ModuleType) -> None:
    with pytest.raises(ScenarioError, match="`WEIGHTS`, whose type ndarray has no literal"):
        sojourn.check(ONE | {"transport": notebook.Weighted})
    # A name without a value is an error of the controller when it is used.
    with pytest.raises(ScenarioError, match=r"cell.py:\d+: NameError: name 'later'"):
        sojourn.run(ONE | {"transport": notebook.Local})
    without = type("Without", (sojourn.Controller,), {"__module__": "notebook"})
    with pytest.raises(ScenarioError, match="no cell has the statement `class Without` at its"):
        sojourn.check(ONE | {"transport": without})


def text_of(controller: object) -> str:
    transport = sojourn.check(ONE | {"transport": controller})["transport"]
    return str(transport["controller"]["text"])


def test_decorated_functions_and_names_of_builtins_are_part_of_a_cell(notebook: ModuleType) -> None:
    decorated = "@functools.cache\ndef packets(): return {}\ndef max(*_): return packets()\n"
    uses = "class Mine(sojourn.Controller):\n    def allowance(self): return max(1, 2)\n"
    texts = []
    for value in (1e4, 2e4):
        execute_cell(notebook, "import functools\n" + decorated.format(value) + uses)
        texts.append(text_of(notebook.Mine))
        assert f"return {value}" in texts[-1]
        assert "def max" in texts[-1]
    assert texts[0] != texts[1]


def test_classes_without_methods_are_part_of_a_cell(notebook: ModuleType) -> None:
    cell = "from enum import Enum\nclass Phase(Enum):\n    UP = 1\n"
    execute_cell(notebook, cell + "class Other(Mine):\n    gain: float = 2.0\n    up = Phase.UP\n")
    text = text_of(notebook.Other)
    for used in ("class Phase(Enum)", "class Mine", "gain: float = 2.0"):
        assert used in text


def test_changes_of_a_class_behind_its_text_are_errors(
    notebook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import sys, sojourn\nN = 1.0\ndef half(): return N / 2\n"
        "def make():\n    class Inner(sojourn.Controller): pass\n    return Inner\n"
        "class Mine(sojourn.Controller):\n    packets = 10.0\n"
        "    def on_start(self, path): pass\n    def allowance(self): return half()\n"
    )
    (tmp_path / "changed.py").write_text(source)
    file = ModuleType("changed")
    file.__file__ = str(tmp_path / "changed.py")
    monkeypatch.setitem(sys.modules, "changed", file)
    exec(compile(source, file.__file__, "exec"), vars(file))
    with pytest.raises(ScenarioError, match="must be at the top level"):
        text_of(file.make())
    changes = (
        ("packets", 100.0, file.Mine, r"`Mine.packets` is 100.0, but 10.0 when its text"),
        ("on_start", lambda self, path: None, file.Mine, r"`Mine.on_start` is not the function"),
        ("N", 2.0, file, r"`N` is 2.0, but 1.0 when its text"),
    )
    for name, value, place, message in changes:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            with pytest.raises(ScenarioError, match=message):
                text_of(file.Mine)
    assert "packets = 10.0" in text_of(file.Mine)
    # A cell whose constant has another value than when its class was defined.
    execute_cell(notebook, "K = 1.0\nclass M(Mine):\n    k: float = K\n")
    assert "K = 1.0" in text_of(notebook.M)
    execute_cell(notebook, "K = 2.0")
    with pytest.raises(ScenarioError, match=r"`M.k` is 1.0, but 2.0 when its text"):
        text_of(notebook.M)
