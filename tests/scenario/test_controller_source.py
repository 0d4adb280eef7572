"""Sources of controllers: loaded anew for each run, with modules and files next to them."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn
from sojourn import cli
from sojourn._core import ScenarioError
from sojourn.runs.runner import key
from sojourn.scenario import controller_files

LINK: dict[str, Any] = {
    "environment": "paper",
    "topology": {"kind": "link", "rate": "1 Gbps", "delay": "100 us"},
    "workload": {"kind": "flows", "flows": [{"source": 0, "target": 1, "size": "200 KB"}]},
    "time_limit": "1 s",
    "transport": "mine.py:Mine",
}

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes a class `Mine` with a body below a head, and other files."""
    monkeypatch.chdir(tmp_path)

    def write_files(body: str, head: str = "", **others: str) -> None:
        body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        text = f"{head}\nimport sojourn\nclass Mine(sojourn.Controller):\n{body}\n"
        Path("mine.py").write_text(text)
        for name, content in others.items():
            Path(f"{name}.py").write_text(textwrap.dedent(content))

    return write_files


def fct(scenario: Any = LINK) -> float:
    return float(sojourn.run(scenario).flows["fct_s"][0])


COUNTING = """
def on_ack(self, ack): STATE.append(1)
def allowance(self): return 1.2e4 - 30.0 * len(STATE)
"""


def test_state_of_modules_and_classes_does_not_remain_between_runs(write: Write) -> None:
    write(COUNTING, "STATE = []")
    assert fct() == fct()
    write(COUNTING, "from helper import STATE", helper="STATE = []")
    assert fct() == fct()
    write(COUNTING.replace("STATE", "self.state") + "\nstate = []")
    assert fct() == fct()
    # Within a run, the flows of a class share its module.
    write(
        "def on_start(self, path): STATE.append(path.flow)\n"
        "def on_end(self, now_s): assert STATE == [0, 1], STATE\n"
        "def allowance(self): return 1e4",
        "STATE = []",
    )
    flows = LINK["workload"]["flows"] * 2
    sojourn.run(sojourn.override(LINK, {"workload.flows": flows}))


def test_runs_in_one_process_and_in_several_are_equal(write: Write) -> None:
    write(COUNTING, "STATE = []")
    runs = [({"i": i}, {**LINK, "name": str(i)}) for i in range(3)]
    for threads in (1, 2):
        fcts = {run.result.flows["fct_s"][0] for run in sojourn.sweep(runs, threads=threads)}
        assert fcts == {fct()}


def test_a_folder_of_modules_next_to_a_controller_is_an_error(write: Write) -> None:
    write("def allowance(self): return W", "from helpers.first import W")
    Path("helpers").mkdir()
    Path("helpers", "first.py").write_text("W = 1e4\n")
    with pytest.raises(ScenarioError, match=r"mine\.py: imports the folder `helpers`"):
        sojourn.check(LINK)


def test_a_controller_imports_modules_next_to_it(write: Write) -> None:
    write(
        """
        def on_start(self, path):
            import later
            self.window = later.WINDOW + second.EXTRA
        def allowance(self): return self.window
        """,
        "import second",
        second="from third import EXTRA",
        third="import second\nEXTRA = 5e3",
        later="WINDOW = 1e4",
    )
    scenario = sojourn.check(LINK)
    names = [file["name"] for file in scenario["transport"]["files"]]
    assert names == ["later.py", "second.py", "third.py"]
    before = key(LINK)
    # The scenario is complete: its modules may be gone, and are not those of this process.
    for name in names:
        Path(name).unlink()
    assert fct(scenario) > 0.0
    assert not {"second", "third", "later"} & sys.modules.keys()
    Path("second.py").write_text("EXTRA = 6e3")
    Path("later.py").write_text("WINDOW = 1e4")
    assert key(LINK) != before


READING = """
files = ("weights.npy", "more/words.txt")
def allowance(self): return WINDOW
"""
READS = """
from pathlib import Path
import numpy as np
FOLDER = Path(__file__).parent
WINDOW = float(np.load(FOLDER / "weights.npy").sum())
assert FOLDER.joinpath("more/words.txt").read_bytes() == "base64,é\\r\\n".encode()
"""


def test_a_controller_reads_the_files_that_it_lists(write: Write) -> None:
    write(READING, READS)
    Path("more").mkdir()
    Path("more/words.txt").write_bytes("base64,é\r\n".encode())
    np.save("weights.npy", np.array([1e3, 4e3]))
    slow, before = fct(), key(LINK)
    np.save("weights.npy", np.array([6e3, 4e3]))
    assert fct() < slow
    assert key(LINK) != before
    runs = [({"i": i}, {**LINK, "name": str(i)}) for i in range(2)]
    assert len(sojourn.sweep(runs, threads=2)) == 2
    scenario = sojourn.check(LINK)
    Path("weights.npy").unlink()
    assert fct(scenario) < slow
    with pytest.raises(ScenarioError, match=r"transport: cannot read `weights.npy`: No such file"):
        sojourn.check(LINK)


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        (
            "from pathlib import Path\nPath(__file__).with_name('w.txt').read_text()",
            "",
            "list the f",
        ),
        ("NAMES = ['w.txt']", "files = NAMES", "mine.py:Mine: files: `w.txt` must be a literal"),
        ("", "files = ['../w.txt']", "mine.py: files: must be in the folder of mine.py, not ../w."),
        ("import nothing_of_this_name", "", "mine.py:1: ModuleNotFoundError: No module named 'not"),
        ("import broken", "", "broken.py:2: not Python"),
        ("import failing", "", "failing.py:1: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)", "", "mine.py:2: SystemExit: 0"),
        ("x = '\0'", "", "mine.py: not Python: source code string cannot contain null bytes"),
        ("", "async def on_ack(self, ack): pass", "mine.py:Mine: on_ack: must not be `async`"),
        ("", "def on_loss(self, loss): yield", "mine.py:Mine: on_loss: must not contain `yield`"),
        ("class Q: pass", "a: Q = Q()", "Mine.a: a parameter must be a number, a string"),
        ("class Q: pass", "a: object = Q()", "Mine.a: a parameter must be a number, a string"),
        ("", "a: 'Nope' = 1", "Mine.a: a parameter must be a number, a string"),
        ("", "a: list = []", "mine.py:3: ValueError: mutable default <class 'list'> for field a"),
    ],
)
def test_errors_of_sources_name_the_file_and_the_line(
    head: str, body: str, expected: str, write: Write
) -> None:
    write(f"{body}\ndef allowance(self): return 1e4", head, broken="\nx = (", failing="1 / 0")
    Path("w.txt").touch()
    with pytest.raises(ScenarioError) as error:
        sojourn.run(LINK)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_command_does_not_succeed_if_a_controller_exits(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("def allowance(self): return 1e4", "raise SystemExit(0)")
    Path("s.toml").write_text("transport = 'mine.py:Mine'\ntopology = 'link'")
    assert cli.invoke(["run", "s.toml"]) == 2
    assert "mine.py:1: SystemExit: 0" in capsys.readouterr().err


def test_optional_parameters_and_missing_documentation_are_listed(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("cap: float | None = None\nn: int = 3\ndef allowance(self): return self.cap or 1e4")
    described = controller_files.read_part("mine.py:Mine")
    assert described["about"] == ""
    assert described["parameters"][0]["allowed"] == "a number or none"
    assert cli.invoke(["parts", "mine.py:Mine"]) == 0
    printed = capsys.readouterr().out
    assert "must be given" not in printed
    assert "Mine(" not in printed
    for cap, expected in ((None, None), ("none", None), (2e4, 2e4)):
        shown = sojourn.check(LINK | {"transport": {"kind": "mine.py:Mine", "cap": cap}})
        assert shown["transport"]["parameters"] == {"cap": expected, "n": 3}


@pytest.mark.parametrize("time", ["float('nan')", "0.0", "float('inf')"])
def test_a_monitor_refuses_times_before_its_interval(time: str, write: Write) -> None:
    write(
        f"""
        def on_start(self, path): self.monitor = path.monitor()
        def on_ack(self, ack):
            self.monitor.close(ack.now_s)
            self.monitor.close({time})
        def allowance(self): return 1e4
        """
    )
    with pytest.raises(ScenarioError, match="now_s must not be before the begin of the interval"):
        sojourn.run(LINK)


def test_a_file_that_runs_itself_ends_with_the_error_even_if_it_catches_it(write: Write) -> None:
    write("def allowance(self): return 1e4")
    mine = Path("mine.py").read_text()
    run = f"sojourn.run({{**{LINK!r}, 'transport': Mine}})"
    Path("mine.py").write_text(f"{mine}\ntry: {run}\nexcept sojourn.ScenarioError: pass\n")
    ended = subprocess.run([sys.executable, "mine.py"], timeout=60, check=False)
    assert ended.returncode == 0
    with pytest.raises(ScenarioError, match=r"^mine.py: runs a scenario when it is imported"):
        sojourn.run(LINK)
