"""Values of Python in scenarios: arrays, paths, classes; errors name the field."""

import datetime
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn
from sojourn._core import ScenarioError
from sojourn.runs.runner import key
from sojourn.scenario.encoding import encode

BASE: dict[str, Any] = {
    "topology": {"kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "1 Gbps"},
    "workload": {
        "kind": "poisson",
        "load": 0.5,
        "flows": 3,
        "sizes": {"kind": "fixed", "size": "10 KB"},
    },
    "transport": "dctcp",
}

CLASS = """
import numpy as np
import sojourn
class Mine(sojourn.Controller):
    gain: float = 0.5
    limits: tuple[float, ...] = ()
    burst = 1
    def on_start(self, path): self.end_s = path.start_s + 1e-5
    def on_timer(self, now_s): self.end_s = None
    def next_timer(self): return RESULT(self.end_s) if self.end_s else None
    def gauges(self): return {"gain": RESULT(self.gain)}
    def allowance(self): return RESULT(1e4)
class Paced(Mine):
    def allowance(self):
        return sojourn.Allowance(RESULT(1e4), RESULT(1e8))
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a module `mine` of the current folder, with the classes `Mine` and `Paced`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("mine.py").write_text(CLASS.replace("RESULT", "float"))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    import mine  # type: ignore[import-not-found] # noqa: PLC0415

    yield mine
    monkeypatch.delitem(sys.modules, "mine", raising=False)


@pytest.mark.parametrize(
    ("field", "value", "same"),
    [
        ("workload.flows", np.int64(3), 3),
        ("workload.load", np.float32(0.5), 0.5),
        ("workload.load", np.array(0.25), 0.25),
        ("account", np.bool_(True), True),
        ("account_flows", np.array([0, 2]), [0, 2]),
        ("seed", np.uint8(7), 7),
        ("name", np.str_("mine"), "mine"),
    ],
)
def test_values_of_numpy_are_those_of_python(field: str, value: Any, same: Any) -> None:
    assert encode(sojourn.override(BASE, {field: value})) == encode(
        sojourn.override(BASE, {field: same})
    )


def test_a_range_of_numpy_has_numbers_as_labels() -> None:
    runs = sojourn.expand(BASE, {"workload.load": np.array([0.25, 0.5]), "seed": [np.int64(2)]})
    labels = [labels for labels, _ in runs]
    assert labels == [{"workload.load": 0.25, "seed": 2}, {"workload.load": 0.5, "seed": 2}]
    assert {type(value) for label in labels for value in label.values()} == {float, int}
    assert sojourn.fluid({"model": "patched_timely", "flows": np.int64(2)}).fixed_point


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("workload.load", math.inf, "workload.load: must be a finite number, not inf"),
        ("workload.load", np.float32("nan"), "workload.load: must be a finite number, not nan"),
        ("name", datetime.date(2026, 1, 1), "name: must be a string, a number, true or false"),
        ("name", {"a", "b"}, "list or a table, not a value of the type set"),
        ("name", b"mine", "not a value of the type bytes"),
        ("seed", Fraction(1), "seed: must be a string, a number"),
        (
            "transport",
            int,
            "transport: must be a string, a number, true or false, a list or a table",
        ),
        ("workload.sizes", {3: 4}, "workload.sizes: names must be strings, not 3"),
        ("workload.load", np.array([1j]), r"workload.load[0]: must be a string, a number"),
        ("transport.gain", np.array([np.inf]), "transport.gain[0]: must be a finite number"),
    ],
)
def test_errors_of_values_name_the_field(field: str, value: Any, expected: str) -> None:
    with pytest.raises(ScenarioError) as error:
        sojourn.check(sojourn.override(BASE, {field: value}))
    assert expected in str(error.value)
    assert str(error.value).startswith(field)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("time_limit = inf", "s.toml: time_limit: must be a finite number, not inf"),
        ("name = 2026-01-01", "s.toml: name: must be a string, a number, true or false"),
    ],
)
def test_errors_of_files_name_the_field(line: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f"{line}\ntopology = 'link'\n")
    command = [sys.executable, "-m", "sojourn", "check", "s.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert expected in done.stderr


def test_functions_accept_paths_of_scenario_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(
        "transport = 'dctcp'\ntopology = { kind = 'dumbbell', senders = 2, receivers = 2 }\n"
        "[workload]\nkind = 'poisson'\nload = 0.5\nflows = 3\n"
        "sizes = { kind = 'fixed', size = '10 KB' }\n"
    )
    read = sojourn.read("s.toml")
    for path in ("s.toml", Path("s.toml")):
        assert sojourn.run(path).flows.equals(sojourn.run(read).flows)
        assert sojourn.check(path) == sojourn.check(read)
        assert sojourn.override(path, {"seed": 2}) == read | {"seed": 2}
        assert sojourn.expand(path, {"seed": [1, 2]}) == sojourn.expand(read, {"seed": [1, 2]})
        assert sojourn.over_seeds([({}, path)], 2) == sojourn.over_seeds([({}, read)], 2)
        assert len(sojourn.sweep([({}, path)])) == len(sojourn.run_many([path])) == 1
    result = sojourn.run("s.toml", cache="cache")
    assert sojourn.run("s.toml", cache=Path("cache")).flows.equals(result.flows)
    assert len(list(Path("cache").glob("[0-9a-f]*"))) == 1
    for wrong in (3, None, [read]):
        with pytest.raises(ScenarioError, match="must be a dictionary or the path of a TOML file"):
            sojourn.run(wrong)  # type: ignore[arg-type] # the error is the test


def test_files_may_be_given_as_paths(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("start_s,source,target,size_bytes\n0,0,2,1000\n")
    workload = {"kind": "trace", "file": tmp_path / "flows.csv"}
    assert sojourn.run(BASE | {"workload": workload}).flows.height == 1


def test_a_class_is_a_transport(mine: Any) -> None:
    named = key(BASE | {"transport": "mine.py:Mine"})
    assert key(BASE | {"transport": mine.Mine}) == named
    assert key(BASE | {"transport": {"kind": mine.Mine}}) == named
    assert key(BASE | {"transport": mine.Mine()}) == named
    faster = {"kind": "mine.py:Mine", "gain": 0.25, "limits": [1, 2]}
    array = np.array([1.0, 2.0])
    for transport in (
        {"kind": mine.Mine, "gain": np.float32(0.25), "limits": array},
        mine.Mine(gain=np.float64(0.25), limits=(np.float32(1), np.int64(2))),
        mine.Mine(gain=0.25, limits=array),
    ):
        assert key(BASE | {"transport": transport}) == key(BASE | {"transport": faster})
    changed = sojourn.override(BASE | {"transport": mine.Mine}, {"transport.gain": 0.25})
    assert key(changed) == key(BASE | {"transport": {"kind": "mine.py:Mine", "gain": 0.25}})
    runs = sojourn.expand(BASE, {"transport": [mine.Mine, "dctcp"]})
    assert [labels["transport"] for labels, _ in runs] == ["Mine", "dctcp"]
    with pytest.raises(ScenarioError, match=r"^transport.gain: must be a finite number, not inf"):
        sojourn.check(BASE | {"transport": {"kind": mine.Mine, "gain": math.inf}})


@pytest.mark.parametrize("kind", ["Mine", "Paced"])
@pytest.mark.parametrize(
    "convert", ["np.float32", "np.int64", "np.array", "lambda x: np.array([[x]])"]
)
@pytest.mark.usefixtures("mine")
def test_results_of_controllers_may_be_arrays_of_one_number(kind: str, convert: str) -> None:
    result = "float"
    fcts = []
    for result in ("float", convert):
        # Times of integers and 32 bits would round.
        text = CLASS.replace("RESULT(self.end_s)", "np.array(self.end_s)")
        Path("mine.py").write_text(text.replace("RESULT", f"({result})"))
        scenario = sojourn.override(BASE, {"samples": {"interval": "10 us", "flows": [0]}})
        fcts.append(sojourn.run(scenario | {"transport": f"mine.py:{kind}"}).flows["fct_s"])
    assert fcts[0].equals(fcts[1])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (
            "def allowance(self): return np.ones(2)",
            "bytes or an Allowance, not ndarray of shape (2",
        ),
        ("def allowance(self): return None", "window in bytes or an Allowance, not NoneType"),
        ("def next_timer(self): return 'x'", "next_timer: must return seconds or None, not str"),
        ("def next_timer(self): return False", "next_timer: must return seconds or None, not bool"),
        ("def allowance(self): return np.True_", "in bytes or an Allowance, not bool"),
        ("def gauges(self): return {'a': True}", "names and numbers, not bool"),
        ("def next_timer(self): return np.nan", "next_timer: must not be before now"),
        ("def gauges(self): return [1]", "gauges: must return a dictionary of names and numbers"),
        ("def gauges(self): return {'a': 'x'}", "names and numbers, not str"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_errors_of_results_name_the_method(method: str, expected: str) -> None:
    text = CLASS.replace("RESULT", "float")
    Path("mine.py").write_text(text + f"class Last(Mine):\n    {method}\n")
    scenario = sojourn.override(BASE, {"samples": {"interval": "10 us", "flows": [0]}})
    with pytest.raises(ScenarioError) as error:
        sojourn.run(scenario | {"transport": "mine.py:Last"})
    assert expected in str(error.value)


def test_errors_of_several_runs_name_the_scenario(mine: Any) -> None:
    loads = [({"scheme": "a", "load": load}, {"workload.load": load}) for load in (0.5, -1)]
    runs = [(labels, sojourn.override(BASE, changes)) for labels, changes in loads]
    with pytest.raises(ScenarioError, match=r"^scheme=a, load=-1: workload.load: "):
        sojourn.sweep(runs)
    with pytest.raises(ScenarioError, match=r"^scenarios\[1\]: workload.load: "):
        sojourn.run_many([scenario for _, scenario in runs])
    Path("mine.py").write_text(CLASS.replace("RESULT", "str"))
    failing = sojourn.over_seeds([({}, BASE | {"transport": "mine.py:Mine"})], 2)
    for threads in (1, 2):
        with pytest.raises(
            ScenarioError, match=r"^seed=[12]: transport.controller: flow "
        ) as error:
            sojourn.sweep(failing, threads=threads)
        assert error.value.__notes__
    with pytest.raises(ScenarioError, match=r"^workload.load: "):
        sojourn.run(runs[1][1])


def test_the_package_lists_its_public_names() -> None:
    code = "import json, sojourn, sojourn.cli; print(json.dumps([dir(sojourn), sojourn.__all__]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    listed, exported = json.loads(done.stdout)
    assert listed == exported == sorted(listed)
    assert {"comparison", "metrics", "plot", "pairs", "tune", "learn", "accounts"} <= set(listed)
    assert not {"processes", "files", "base", "cli", "runs", "scenario", "lazy"} & set(listed)
    for name in listed:
        getattr(sojourn, name)
