"""Tests of reading folders of cases, and of the errors of invalid folders."""

import contextlib
import importlib
import os
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn import ScenarioError, cli
from sojourn.validate.cases import find_cases, read_cases

CASES = """
simulator = "other"
payload_bytes = 1000
wire_bytes = 1040
link = "left->right"
least_flows = 1
sample_interval = "10 us"

[groups]
small = [1, 9]

[scenario]
topology = { kind = "dumbbell", senders = 1, receivers = 1 }
transport = "dctcp"

[cases.one]
title = "a few flows"
flows = "one.parquet"
measured_s = [0.001, 0.002]
end_s = 0.004
quick = { measured_s = [0.001, 0.0015], end_s = 0.002 }

[cases.one.runs.dctcp]
label = "DCTCP"
by = "group"
within.mean = { small = 0.1 }

[cases.one.runs.sharing]
label = "processor sharing"
like = "dctcp"
scenario = { model = "processor_sharing", transport = "none" }

[cases.listed]
title = "single flows"
by = "flow"
measured_s = [0, 0.001]
end_s = 0.004
within = 0.1

[cases.listed.scenario.workload]
kind = "flows"
flows = [{ source = 0, target = 1, size = "10 KB" }]

[cases.listed.runs.sharing]
label = "processor sharing"
scenario = { model = "processor_sharing", transport = "none" }

[cases.long]
title = "two long flows"
measured_s = [0.0005, 0.003]
end_s = 0.005
share_within = 0.4

[cases.long.scenario.workload]
kind = "flows"
flows = [
  { source = 0, target = 1, start = "0.5 ms", size = "1 GB" },
  { source = 0, target = 1, start = "0.6 ms", size = "1 GB" },
]

[cases.long.runs.both]
label = "both"
"""

BINS = """case,run,low,high,flows,unfinished,mean,stderr,median,p99
one,dctcp,1,9,20,0,0.00001,0.0,0.00001,0.00002
one,dctcp,10,99,20,0,0.00003,,,
one,sharing,1,9,20,0,0.00001,0.0,0.00001,0.00002
listed,sharing,0,0,1,0,0.00001,0.0,0.00001,0.00002
"""

TOTALS = """case,run,flows,mean,utilisation
one,dctcp,40,0.00002,0.2
one,sharing,40,0.00002,
"""

SHARES = """case,run,from_s,to_s,flow,bytes
long,both,0.001,0.002,0,600
long,both,0.001,0.002,1,400
long,both,0.002,0.005,0,500
long,both,0.002,0.005,1,500
"""

PORTS = """[ports]
bottleneck = ["left->right"]
"""

FLOWS = pl.DataFrame(
    {
        "start_us": [45 * i for i in range(60)],
        "packets": [5 + 10 * (i % 2) for i in range(60)],
        "dctcp": [20 + i % 7 for i in range(60)],
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a valid folder of cases."""
    folder = tmp_path / "validation" / "other"
    folder.mkdir(parents=True)
    write(folder)
    monkeypatch.chdir(tmp_path)
    return folder


def write(folder: Path, cases: str = CASES, bins: str = BINS, shares: str = SHARES) -> None:
    (folder / "cases.toml").write_text(cases, encoding="utf-8")
    (folder / "bins.csv").write_text(bins, encoding="utf-8")
    (folder / "totals.csv").write_text(TOTALS, encoding="utf-8")
    (folder / "shares.csv").write_text(shares, encoding="utf-8")
    FLOWS.write_parquet(folder / "one.parquet")


def test_a_valid_folder_is_read_and_replayed(folder: Path) -> None:
    names = ["one.dctcp", "one.sharing", "listed.sharing", "long.both"]
    assert [replay.full_name for replay in read_cases(folder)] == names
    assert [replay.full_name for replay in read_cases(folder, quick=True)] == ["one.dctcp"]
    assert cli.invoke(["validate", "other", "--out", "out"]) == 0


def test_a_short_run_is_not_repeated(folder: Path) -> None:
    write(
        folder,
        CASES.replace("within.mean", "repeats = [{ seed = 3 }, { seed = 4 }]\nwithin.mean", 1),
    )
    runs, [short] = read_cases(folder, only=["one.dctcp"]), read_cases(folder, quick=True)
    assert [[scenario["seed"] for scenario in run.scenarios] for run in runs] == [[3, 4]]
    assert [scenario["seed"] for scenario in short.scenarios] == [3]


def error_of(command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one-line error of a command."""
    assert cli.invoke(command) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    return printed.err


@pytest.fixture(autouse=True)
def fail_if_an_invalid_folder_runs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "a_valid_folder" not in request.node.name:
        module = importlib.import_module("sojourn.validate.replay")
        monkeypatch.setattr(
            module, "run_many", lambda *_, **__: pytest.fail("an invalid folder ran")
        )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Tables.
        (CASES, "", "cases.toml: missing key `simulator`"),
        (CASES, 'simulator = "other"\ncases = 3', "cases: must be a table, not 3"),
        (CASES, 'simulator = "other"\n[cases]', "cases: must have a length of at least 1"),
        (CASES, 'simulator = "other"\ncases.one = "x"', "cases.one: must be a table, not"),
        (CASES, 'simulator = "other"\n[cases.one]', "missing key `cases.one.runs`"),
        (CASES, 'simulator = "other"\n[cases.one.runs]', "cases.one.runs: must have a length"),
        (CASES, 'simulator = "other"\ncases.one.runs.a = 1', "cases.one.runs.a: must be a table"),
        (CASES, "[" * 500, "cases.toml:1: not TOML"),
        (CASES, "a = " + 500 * "[" + 500 * "]", "cases.toml: nested too deeply"),
        ('simulator = "other"', "simulator = 3", "simulator: must be a valid string, not 3"),
        # Unknown keys.
        ("least_flows", "least_flow", "least_flow: unknown key; did you mean `least_flows`?"),
        (
            'label = "DCTCP"',
            'lable = "DCTCP"',
            "one.dctcp: lable: unknown key; did you mean `label",
        ),
        ("end_s = 0.002 }", "ends = 1 }", "cases.one.quick.ends: unknown key"),
        ('like = "dctcp"', 'liek = "dctcp"', "one.sharing: liek: unknown key"),
        # Types and values.
        ("payload_bytes = 1000", 'payload_bytes = "x"', "payload_bytes: must be a valid integer"),
        ("payload_bytes = 1000", "payload_bytes = true", "payload_bytes: must be a valid integer"),
        ("payload_bytes = 1000", "payload_bytes = 0", "payload_bytes: must be greater than or"),
        ("payload_bytes = 1000", f"payload_bytes = 1{30 * '0'}", "payload_bytes: must be less"),
        ("payload_bytes = 1000", f"payload_bytes = 1{5000 * '0'}", "cases.toml: not TOML"),
        ("wire_bytes = 1040", "wire_bytes = 40", "`wire_bytes` must be no less than `payload_b"),
        ("wire_bytes = 1040", "", "one.dctcp: missing key `wire_bytes`"),
        ("end_s = 0.004", "end_s = nan", "end_s: must be a finite number, not nan"),
        ("end_s = 0.004", "end_s = 1e300", "end_s: must be less than or equal to 1000000000"),
        ("end_s = 0.004", "end_s = [1]", "end_s: must be a valid number, not [1]"),
        ("end_s = 0.004", "end_s = 2020-01-01", "end_s: must be a valid number"),
        ("end_s = 0.004", "end_s = 0.0015", "`measured_s` must end no later than `end_s`"),
        ("end_s = 0.002 }", "end_s = 0.0012 }", "one.dctcp (quick): `measured_s` must end no"),
        ("[0.001, 0.002]", "3", "measured_s: must be a list, not 3"),
        ("[0.001, 0.002]", "[0.001]", "missing key `measured_s.1`"),
        ("[0.001, 0.002]", "[0, 1, 2]", "measured_s: must have a length of at most 2"),
        ("[0.001, 0.002]", '["a", 1]', "measured_s.0: must be a valid number, not 'a'"),
        ("[0.001, 0.002]", "[0.002, 0.001]", "measured_s: the first must be less than the second"),
        ("[0.001, 0.002]", "[-1, 0.001]", "measured_s.0: must be greater than or equal to 0"),
        ("[0.001, 0.002]", "[0.003, 0.004]", "one.dctcp: measured_s: no flow arrives from 0.003"),
        ("[0.001, 0.0015]", "[0.00191, 0.00192]", "one.dctcp (quick): measured_s: no flow arrives"),
        ("[0, 0.001]", "[0.001, 0.002]", "listed.sharing: measured_s: no flow arrives from 0.001"),
        ("small = 0.1", "smal = 0.1", "within.mean: unknown bin `smal`; did you mean `small`?"),
        ("within.mean", "within.median", "must be 'mean', 'p95' or 'p99'"),
        (
            "within.mean",
            "factor.drops = 2\nwithin.mean",
            "must be 'timeouts', 'retransmits' or 'pauses'",
        ),
        ("within.mean", "factor.timeouts = 0.5\nwithin.mean", "must be greater than or equal to 1"),
        ("within.mean", "repeats = []\nwithin.mean", "`repeats` must be one or more tables"),
        ("within.mean", "repeats = [{ sed = 1 }]\nwithin.mean", "one.dctcp: sed: unknown field"),
        ("within = 0.1", 'within = "x"', "within.everywhere: must be a valid number"),
        ("within = 0.1", "within = -1", "must be greater than 0"),
        ("small = [1, 9]", "small = [1]", "missing key `groups.small.1`"),
        ("small = [1, 9]", 'small = "x"', "groups.small: must be a list"),
        ('by = "flow"', 'by = "flows"', "by: must be 'size', 'flow' or 'group', not 'flows'"),
        ('by = "flow"', "by = []", "by: must be 'size', 'flow' or 'group', not []"),
        ('by = "flow"', 'over = "alone"', 'listed.sharing: over = "alone" needs a column `alone_'),
        ('by = "flow"', 'until = "acked"', 'until = "acked" of an ideal needs a column `alone_us`'),
        (
            "[scenario]",
            "[cases.one.scenario]\nscenario = 3\n[scenario]",
            "one.dctcp: scenario: unknown field",
        ),
        ("share_within = 0.4", "", "long.both: share_within: is required for the rows of `long.bo"),
        ("share_within = 0.4", "share_within = 0", "share_within: must be greater than 0, not 0"),
        ("share_within = 0.4", 'share_within = "x"', "share_within: must be a valid number"),
        ("share_within", "shares_within", "unknown key; did you mean `share_within`?"),
        (
            "within = 0.1",
            "share_within = 0.1",
            "share_within: has no rows of `listed.sharing` in shar",
        ),
        (
            'label = "both"',
            'label = "b"\nscenario.model = "srpt"',
            "share_within: needs the packet model",
        ),
        # Other runs.
        ('like = "dctcp"', 'like = "sharing"', "like: cycle one.sharing like one.shar"),
        ('like = "dctcp"', 'like = "dctpc"', "unknown run `one.dctpc`; did you mean `one.dctcp`?"),
        ('like = "dctcp"', "like = 3", "cases.one.runs.sharing.like: must be a valid string"),
        ('label = "DCTCP"', 'like = "sharing"', "one.dctcp: like: cycle"),
        ("runs.dctcp]", "runs.packets]", "invalid name of a run: `packets`"),
        # Errors of the core have the run's name.
        ('transport = "dctcp"', 'transport = "dctpc"', "one.dctcp: transport: "),
        ('"10 us"', '"10 parsecs"', "one.dctcp: samples.interval"),
        ('"left->right"', '"left->rigth"', "one.dctcp: samples"),
        # The file of flows.
        ('"one.parquet"', '"two.parquet"', "two.parquet: cannot be read: No such file"),
        ('"one.parquet"', '"."', "other: cannot be read: a directory, not a file"),
        ('"one.parquet"', '"cases.toml"', "cases.toml: is not a valid table"),
        ('"one.parquet"', '"a\\u0000b"', "cannot be read: invalid file name"),
        ('"one.parquet"', '"/dev/zero"', "/dev/zero: cannot be read: a device, not a file"),
        ('"one.parquet"', '"*.parquet"', "*.parquet: cannot be read"),
        ('"one.parquet"', f'"{300 * "x"}"', "cannot be read: File name too long"),
    ],
)
def test_an_invalid_cases_file_gives_an_error_with_run_and_key(
    old: str, new: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in CASES
    write(folder, cases=CASES.replace(old, new))
    error = error_of(["validate", "other"], capsys)
    assert expected in error


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (BINS, "", "bins.csv: is not a valid table"),
        (BINS, "\0\1\2", "bins.csv: ���: unknown column"),
        (BINS, BINS + "one,dctcp,1,2,3,4,5,6,7,8,9\n", "bins.csv: is not a valid table"),
        ("stderr", "stder", "stder: unknown column; did you mean `stderr`?"),
        (",p99\n", "\n", "bins.csv: is not a valid table"),
        ("low,high", "low,low", "low_duplicated_0: unknown column"),
        ("1,9,20,0,0.00001", "1,9,20,0,nan", "mean, row 1: must be a number from 1e-12 to 1e+15"),
        ("1,9,20,0,0.00001", "1,9,20,0,inf", "mean, row 1: must be a number"),
        ("1,9,20,0,0.00001", "1,9,20,0,-1", "mean, row 1: must be a number"),
        ("1,9,20,0,0.00001", "1,9,20,0,0", "mean, row 1: must be a number"),
        ("1,9,20,0,0.00001", "1,9,20,0,?", "mean, row 1: must be a number from 1e-12 to 1e+15, n"),
        ("dctcp,10,99,20", "dctcp,10,99,nan", "flows, row 2: must be a whole number from 0"),
        (
            "dctcp,10,99,20",
            "dctcp,10,99,",
            "flows, row 2: must be a whole number from 0 to 1e+15, ",
        ),
        ("dctcp,10,99,20", "dctcp,10,99.5,20", "high, row 2: must be a whole number from 0"),
        ("dctcp,10,99,20", "dctcp,99,10,20", "bin 99 to 10 of `one.dctcp` ends before it starts"),
        ("dctcp,10,99,20", "dctcp,1,9,20", "the bin 1 to 9 of `one.dctcp` is duplicate"),
        ("one,dctcp,10", "one,,10", "run, row 2: must be a string, not nothing"),
        ("one,sharing", "one,sharin", "bins.csv: missing rows of the run `one.sharing`"),
        ("one,dctcp,10", "one,dctpc,10", "unknown run `one.dctpc`; did you mean `one.dctcp`?"),
    ],
)
def test_an_invalid_table_gives_an_error_with_column_and_row(
    old: str, new: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in BINS
    write(folder, bins=BINS.replace(old, new))
    error = error_of(["validate", "other"], capsys)
    assert "/validation/other/bins.csv: " in error
    assert expected in error


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (SHARES, "", "is not a valid table"),
        ("bytes", "byte", "byte: unknown column; did you mean `bytes`?"),
        (",bytes", "", "is not a valid table"),
        ("0.001,0.002,0,600", "0.001,0.002,0,-1", "bytes, row 1: must be a whole number from 0"),
        ("0.001,0.002,0,600", "0.001,0.002,0,", "bytes, row 1: must be a whole number from 0"),
        ("0.001,0.002,0,600", "0.001,0.002,0.5,600", "flow, row 1: must be a whole number from 0"),
        ("0.001,0.002,0,600", "nan,0.002,0,600", "from_s, row 1: must be a number from 0 to 1e+09"),
        ("0.001,0.002,0,600", "0.001,1e10,0,600", "to_s, row 1: must be a number from 0 to 1e+09"),
        (
            "0.001,0.002,1,400",
            "0.001,0.002,0,400",
            "`long.both`: the period 0.001 to 0.002 s contains a flow twice",
        ),
        ("0.001,0.002,1,400\n", "0.001,0.003,1,400\n", "0.001 to 0.002 s contains only one flow"),
        ("0.001,0.002", "0.002,0.001", "the period 0.002 to 0.001 s ends before it starts"),
        ("0.002,0.005", "0.002,0.006", "0.006 s ends after the end of the run, `end_s` = 0.005"),
        (",500", ",0", "the period 0.002 to 0.005 s contains no bytes"),
        ("long,both", "long,boht", "bins.csv: missing rows of the run `long.both`"),
        (
            "long,both,0.001",
            "long,boht,0.001",
            "unknown run `long.boht`; did you mean `long.both`?",
        ),
        ("long,both,0.001", "one,dctcp,0.001", "one.dctcp: share_within: is required for the rows"),
        ("0.002,0.005,1", "0.002,0.005,7", "long.both: shares.csv: unknown flow 7 (flows: 0 to 1)"),
    ],
)
def test_invalid_shares_give_an_error_with_row_or_period(
    old: str, new: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in SHARES
    write(folder, shares=SHARES.replace(old, new))
    assert expected in error_of(["validate", "other"], capsys)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            "one,dctcp,botleneck,0.003",
            "unknown group of ports `botleneck`; did you mean `bottleneck`?",
        ),
        ("one,dctcp,bottleneck,0.02", "until_s: must be no later than `end_s` = 0.004"),
        ("one,dctcp,bottleneck,0", "until_s"),
        ("one,dctpc,bottleneck,0.003", "unknown run `one.dctpc`; did you mean `one.dctcp`?"),
        ("one,sharing,bottleneck,0.003", "one.sharing: ports: needs the packet model"),
    ],
)
def test_invalid_queues_give_an_error_with_the_run(
    row: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, cases=CASES.replace("[scenario]", f"{PORTS}\n[scenario]", 1))
    header = "case,run,ports,until_s,mean_kb,p95_kb,p99_kb,p999_kb,max_kb"
    (folder / "queues.csv").write_text(f"{header}\n{row},1,2,3,4,5\n", encoding="utf-8")
    assert expected in error_of(["validate", "other"], capsys)


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


Damage = Callable[[Path], Any]


def replaced(changes: dict[str, Any]) -> Damage:
    return lambda folder: FLOWS.with_columns(**changes).write_parquet(folder / "one.parquet")


def truncated(name: str, length: int) -> Damage:
    def truncate(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:length])

    return truncate


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: (folder / "bins.csv").unlink(), "bins.csv: cannot be read: No such file"),
        (lambda folder: (folder / "totals.csv").unlink(), "totals.csv: cannot be read: No such"),
        (lambda folder: (folder / "shares.csv").unlink(), "missing rows of the run `long.both`"),
        (
            lambda folder: (folder / "totals.csv").write_text(TOTALS + TOTALS.splitlines()[1]),
            "totals.csv: duplicate rows of the run `one.dctcp`",
        ),
        (
            lambda folder: (folder / "totals.csv").write_text(TOTALS.replace("mean", "maen")),
            "totals.csv: maen: unknown column; did you mean `mean`?",
        ),
        (
            lambda folder: (folder / "bins.csv").write_bytes(b"\xff\xfe"),
            "bins.csv: ",
        ),
        (
            lambda folder: (folder / "cases.toml").write_bytes(b"\xff\xfe"),
            "cases.toml: cannot be read: not UTF-8 text",
        ),
        (
            lambda folder: make_pipe(
                (folder / "bins.csv").rename(folder / "old").with_name("bins.csv")
            ),
            "bins.csv: cannot be read: a pipe, not a file",
        ),
        (truncated("one.parquet", 0), "one.parquet: is not a valid table"),
        (truncated("one.parquet", 100), "one.parquet: is not a valid table"),
        (truncated("one.parquet", -5), "one.parquet: is not a valid table"),
        (
            replaced({"start_us": pl.lit("x")}),
            "start_us, row 1: must be a number from 0 to 1e+15, not `x`",
        ),
        (replaced({"start_us": pl.lit(None, pl.Float64)}), "start_us, row 1: must be a number"),
        (replaced({"start_us": pl.lit(float("nan"))}), "start_us, row 1: must be a number"),
        (replaced({"start_us": -pl.col("start_us")}), "start_us, row 2: must be a number from 0"),
        (
            replaced({"start_us": 99 - pl.int_range(60)}),
            "start_us: rows must be in ascending order",
        ),
        (replaced({"packets": 0}), "packets, row 1: must be a whole number from 1 to 1e+09"),
        (replaced({"packets": 1.5}), "packets, row 1: must be a whole number"),
        (replaced({"packets": True}), "packets: must be a whole number from 1 to 1e+09, not Bool"),
        (replaced({"dctcp": pl.lit([1])}), "dctcp: must be a number"),
        (replaced({"dctcp": -1}), "dctcp, row 1: must be a number"),
        (replaced({"source": 0, "target": 0}), "one.dctcp: workload"),
        (replaced({"source": 0, "target": 99}), "one.dctcp: workload"),
        (replaced({"dctpc": 1}), "dctpc: unknown column; did you mean `dctcp`?"),
        (
            lambda folder: FLOWS.drop("packets").write_parquet(folder / "one.parquet"),
            "must have either the column `packets` or the column `bytes`",
        ),
        (
            lambda folder: FLOWS.clear().write_parquet(folder / "one.parquet"),
            "measured_s: no flow arrives",
        ),
    ],
)
def test_an_unreadable_file_gives_an_error_with_its_name(
    damage: Damage, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder)
    assert expected in error_of(["validate", "other"], capsys)


def test_quick_without_short_runs_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for names in (["other", "--only", "listed"], ["other", "--only", "one.sharing"]):
        assert "no short runs" in error_of(["validate", *names, "--quick"], capsys)


def test_a_missing_page_of_results_is_an_error_before_the_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = error_of(["validate", "other", "--record"], capsys)
    assert "docs/validation.md: cannot be read: No such file" in error


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["dctcp", "one.sharing", "sharing", "left->right", "1 us", [0, 1]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = (f"{as_toml(str(key))} = {as_toml(item)}" for key, item in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def paths_of(table: Any) -> list[list[Any]]:
    """Return the paths of all values in a table."""
    items = table.items() if isinstance(table, dict) else enumerate(table)
    paths: list[list[Any]] = []
    for key, value in items:
        inner = paths_of(value) if isinstance(value, dict | list) else []
        paths += [[key], *([key, *path] for path in inner)]
    return paths


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_in_a_cases_file_is_accepted_or_gives_an_error(
    data: st.DataObject, folder: Path
) -> None:
    table = tomllib.loads(CASES)
    path = data.draw(st.sampled_from(paths_of(table)))
    parent = table
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = data.draw(VALUES)
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in table.items())
    write(folder, cases=text)
    for quick in (False, True):
        read_or_fail(folder, quick=quick)


def read_or_fail(folder: Path, *, quick: bool = False) -> None:
    with contextlib.suppress(ScenarioError):
        assert read_cases(folder, quick=quick)


@pytest.mark.parametrize(
    "name", ["cases.toml", "bins.csv", "totals.csv", "shares.csv", "one.parquet"]
)
def test_a_file_with_changed_bytes_is_accepted_or_gives_an_error(name: str, folder: Path) -> None:
    original = (folder / name).read_bytes()
    generator = random.Random(name)
    for _ in range(60):
        content = bytearray(original)
        for _ in range(generator.choice([1, 1, 2, 8])):
            start = generator.randrange(len(content))
            content[start : start + generator.randrange(3)] = generator.randbytes(
                generator.randrange(3)
            )
        (folder / name).write_bytes(content)
        read_or_fail(folder)


def test_an_unknown_name_is_answered_by_those_that_are_there() -> None:
    with pytest.raises(ScenarioError, match=r"nope: unknown folder of cases \(there are: hpcc, "):
        find_cases("nope")
    with pytest.raises(ScenarioError, match=r"did you mean `scale`\?.*, scale, yaps\)"):
        find_cases("scal", others=["scale"])
    with pytest.raises(ScenarioError, match=r"foo: unknown run \(there are: .*lone"):
        read_cases(find_cases("linux"), only=["foo"])
