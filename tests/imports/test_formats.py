"""Recognition of formats, the command, and a fuzz test of all readers."""

import random
import re
from pathlib import Path

import pytest

import sojourn
from imports.conftest import Convert
from imports.test_goal import RING
from imports.test_hpcc import FLOWS, TOPOLOGY
from imports.test_htsim import MATRIX, THREE_TIERS, TWO_TIERS
from imports.test_sizes import THREE_COLUMNS
from imports.test_traces import PENSIEVE
from sojourn import cli
from sojourn.base import paths
from sojourn.imports import formats
from sojourn.imports.document import Document

SAMPLES = {
    "hpcc-topology": [TOPOLOGY, "6 2 1 1 4 H100\n4 5\n0 4 900Gbps 1e-6 0\n"],
    "hpcc-flows": [FLOWS, "2\n7 0 2 3 100 5000 0.5\n"],
    "htsim-topology": [TWO_TIERS, THREE_TIERS],
    "htsim-matrix": [MATRIX],
    "sizes": [
        "200\n100 0.5\n300 1\n",
        "40 0\n40 50\n200 100\n",
        "1 0\n2 0.5\n3 0.9\n100 1\n",
        "1500 1\n",
        THREE_COLUMNS,
    ],
    "mahimahi": ["0\n0\n2\n5\n", "3\n"],
    "goal": [RING],
    "pensieve": [PENSIEVE, "0 0.5\n1 0.25\n", "0.0 1\n1.0 1\n2.0 1\n", "0 5\n"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in SAMPLES.items() for text in texts]
)
def test_a_file_is_recognised_by_its_content(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    assert formats.recognised(Document.read(path)).name == name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 0\n100 50\n1000 90\n10000 99.99\n", "(line 4: the last cumulative value must be 1"),
        ("0 0\n100 0.5\n1000 0.4\n10000 1\n", "(line 3: sizes and cumulative values must not"),
        ("1 0\n2 0.5\n3 0.4\n5 1\n", "(line 3: sizes and cumulative values must not fall"),
        ("1 0\n2 0.5\n3 0.4\n5 0.9\n", "(line 3: sizes and cumulative values must not fall"),
        ("1 1\n2 0.5\n3 0.1\n", "(line 2: sizes and cumulative values must not fall from"),
        ("0 0\n100 0.5\n10000 1.0001\n", "(line 3: the last cumulative value must be 1 or 100"),
        ("0.1 100\n0.5 1000\n1 10000\n", "(line 2: expected `size cumulative`"),
        ("0 0.2\n1 0.5\n2 1\n", "(the mean size must be 1 B or more, not 0.9 bytes)"),
        ("0 10\n30 50\n60 100\n", "sizes and cumulative values or seconds and Mb/s:"),
        ("0 0.2\n5 0.5\n10 1\n", "sizes and cumulative values or seconds and Mb/s:"),
        ("0 4500\n1000 2250\n2000 1500\n", "(line 1: expected `size cumulative`"),
        ("0 4.5\n2 2\n1 3\n", "seconds and Mb/s (line 3: times must ascend"),
    ],
)
def test_two_columns_with_two_readings_need_their_format(
    text: str, problem: str, convert: Convert
) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"table": text})
    assert "table: two columns of numbers may be sizes and cumulative values" in str(error.value)
    assert problem in str(error.value)
    assert str(error.value).endswith("give --as sizes or --as pensieve")


def test_a_file_of_another_shape_gives_the_shapes_of_all_formats(convert: Convert) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"notes.txt": "once upon\na time\n"})
    line = str(error.value)
    assert "\n" not in line
    assert "format not recognised; expected one of htsim-topology: `Nodes N`" in line
    assert set(formats.NAMES) == set(SAMPLES)
    assert all(f"{name}: " in line for name in formats.NAMES)
    with pytest.raises(sojourn.ScenarioError, match=r"^--as: unknown format `hpcc`"):
        convert({"notes.txt": "1\n"}, names=["hpcc"])
    with pytest.raises(sojourn.ScenarioError, match=r"b: one of several topologies|a: one of"):
        convert({"a": TOPOLOGY, "b": TWO_TIERS})
    with pytest.raises(sojourn.ScenarioError, match=r"^sizes: the flows of flows have sizes"):
        convert({"flows": FLOWS, "sizes": "10 0\n20 1\n"})


def test_the_command_writes_a_scenario_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topology.txt").write_text(TOPOLOGY, encoding="utf-8")
    Path("flow.txt").write_text(FLOWS, encoding="utf-8")
    command = ["import", "topology.txt", "flow.txt", "--out", "fabric"]
    assert cli.invoke(command) == 0
    output = capsys.readouterr().out
    assert "written to fabric: flows.csv, scenario.toml, topology.csv\n" in output
    comments = Path("fabric/scenario.toml").read_text(encoding="utf-8")
    assert "# flow.txt: ports are dropped\n" in comments
    assert cli.invoke(["run", "fabric/scenario.toml"]) == 0
    assert cli.invoke(command) == 2
    assert "exists already, nothing was written" in capsys.readouterr().err
    assert cli.invoke(["import", "missing.txt"]) == 2
    assert "missing.txt: cannot be read" in capsys.readouterr().err
    assert not Path("imported").exists()


def test_the_examples_of_the_documentation_are_recognised(convert: Convert) -> None:
    page = ((paths.checkout() or Path()) / "docs" / "imports.md").read_text(encoding="utf-8")
    fenced = re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)
    blocks = [text for language, text in fenced if not language]
    names = ["hpcc-topology", "hpcc-flows", "htsim-matrix", "sizes", "pensieve"]
    assert len(blocks) == len(names)
    for name, text in zip(names, blocks, strict=True):
        assert f"({name})" in convert({"file": text}).texts["scenario.toml"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 1 3 100 1000 0.1\n0 1 3 100 9 0.2\n", ":1: expected a line with the number of flows"),
        ("src dst pg port size start\n0 1 3 100 9 0.1\n", ":1: expected a line with the number"),
        ("size,cdf\n0,0\n100,1\n", ":1: names of columns must state the unit of sizes"),
        ("time_s,rate\n0,4.5\n1,2.25\n", ":1: names of columns must state the unit of sizes"),
        ("0 0\n100 50%\n900 100%\n", ":2: expected two numbers without units"),
        ("0 4.5Mbps\n1 2Mbps\n", ":1: expected two numbers without units"),
        ("0 0\n1 KB 50\n", ":2: format not recognised; `--as sizes`: expected `size cumulative`"),
        ("1\n2\nthree\n", ":3: format not recognised; `--as mahimahi`: expected a line with a"),
        ("3 1 2\n2\n0 2 25 Gbps 1us 0\n", ":3: format not recognised; `--as hpcc-topology`: link"),
        ("3 1 1\n2\n0 2 25e9 1e-6 0\n", ": format not recognised; give `--as hpcc-topology` if"),
    ],
)
def test_a_mistake_in_a_file_gives_its_line(text: str, expected: str, convert: Convert) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"file": text})
    assert f"file{expected}" in str(error.value)
    assert "\n" not in str(error.value)


def test_comments_may_follow_values(convert: Convert) -> None:
    commented = convert({"file": "# sizes\n0 0 # none\n100 0.5 #half\n900,1\n"})
    assert commented.texts["sizes.csv"] == "bytes,cumulative\n0,0\n100,0.5\n900,1\n"


def test_options_that_no_file_uses_are_errors(convert: Convert) -> None:
    for name, texts in SAMPLES.items():
        if name not in ("sizes", "htsim-matrix"):
            with pytest.raises(sojourn.ScenarioError, match=r"^--unit: no file of this import has"):
                convert({"file": texts[0]}, unit="bytes")
        if name != "pensieve":
            with pytest.raises(sojourn.ScenarioError, match=r"^--rates-hold: no file of this"):
                convert({"file": texts[0]}, rates_hold="after")
    assert convert({"file": PENSIEVE}, rates_hold="after").texts


PIECES = ["0", "-1", "1e99", "9" * 30, "nan", "inf", "->", "3->3", "\t", "\n", "1us", "25Gbps", "#"]


def test_damaged_files_give_a_scenario_or_one_line(tmp_path: Path, convert: Convert) -> None:
    texts = [text for samples in SAMPLES.values() for text in samples]
    accepted = 0
    errors = set()
    for seed in range(600):
        generator = random.Random(seed)
        text = generator.choice(texts)
        for _ in range(generator.randint(1, 3)):
            words = re.split(r"(\s+)", text)
            place = generator.randrange(len(words))
            piece = generator.choice(
                [*PIECES, "", generator.choice(words), generator.choice(texts)]
            )
            words[place] = piece
            text = "".join(words)
        try:
            convert({"file": text}, unit=generator.choice([None] * 4 + ["bytes", "us"]))
            accepted += 1
        except sojourn.ScenarioError as error:
            line = str(error)
            assert line.strip(), seed
            assert "\n" not in line, f"{seed}: {line!r}"
            errors.add(re.sub(r"[\d.]+", "0", line))
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r} of {text!r}")
    assert accepted > 20
    assert len(errors) > 30
