"""Import of flow size distributions."""

import re
import statistics
from pathlib import Path

import pytest

import sojourn
from imports.conftest import Convert, write
from sojourn.runs.result_tables import flow_table
from sojourn.scenario import encoding

THREE_COLUMNS = "40 1 0\n40 1 0.5\n200 1 1\n"
"""Mean 0.5 * 40 + 0.5 * 120 = 80."""


def mean_bytes(convert: Convert, text: str, **options: str) -> float:
    """Return the mean size of the flows of an imported table."""
    imported = convert({"sizes.txt": text}, **options)
    sizes = {"kind": "empirical", "file": {"name": "s", "text": imported.texts["sizes.csv"]}}
    if 'packet = "1442 B"' in imported.texts["scenario.toml"]:
        sizes["packet"] = "1442 B"
    if 'packet = "1460 B"' in imported.texts["scenario.toml"]:
        sizes["packet"] = "1460 B"
    poisson = {"kind": "poisson", "load": 0.1, "flows": 20_000, "sizes": sizes}
    flows = encoding.trace(
        {"topology": "star", "transport": "dctcp", "workload": poisson, "time_limit": "100 s"}
    )
    return float(statistics.mean(flow_table(flows)["size_bytes"].to_list()))


def test_three_columns_need_their_unit(convert: Convert) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"sizes.tcl": THREE_COLUMNS})
    assert str(error.value).endswith(
        "the first of three columns may count bytes (mean 80 B) or packets (mean 80 packets of "
        "1460 B, 117 KB): give --unit bytes or --unit packets"
    )
    # Sizes are rounded up to bytes.
    assert mean_bytes(convert, THREE_COLUMNS, unit="bytes") == pytest.approx(80.5, rel=0.02)
    lines = convert({"sizes.tcl": THREE_COLUMNS}, unit="packets").lines
    assert lines[1] == (
        "sizes.tcl: the mean is that of the table, before rounding up to whole packets"
    )
    # To packets: 0.5 * 40 + 0.5 * 120.5.
    in_packets = mean_bytes(convert, THREE_COLUMNS, unit="packets")
    assert in_packets == pytest.approx(80.25 * 1460, rel=0.02)


def test_two_columns_count_bytes_and_the_mean_is_reported(convert: Convert) -> None:
    for last in ("1", "100"):
        half = "0.5" if last == "1" else "50"
        imported = convert({"sizes.txt": f"40 0\n40 {half}\n200,{last}\n"})
        assert imported.lines[0] == "sizes.txt: 3 rows, sizes in bytes; mean 80 B, largest 200 B"
        assert "the unit is an assumption" in imported.lines[1]
    named = convert({"sizes.csv": "size_bytes,cdf\n40,0.5\n200,1\n"})
    assert named.texts["sizes.csv"] == "bytes,cumulative\n40,0.5\n200,1\n"
    assert not any("assumption; `--unit" in line for line in named.lines)


def test_a_mean_on_the_first_line_is_a_step_function(convert: Convert) -> None:
    # Homa draws exactly 100 B or 300 B: mean 200 B, while a linear table has 0.5 * 100 + 0.5 * 200.
    imported = convert({"homa.txt": "200\n100\t0.5\n300 1\n"})
    assert imported.texts["sizes.csv"] == "bytes,cumulative\n100,0.5\n300,0.5\n300,1\n"
    assert "homa.txt: the table is a step function, as Homa draws sizes" in imported.lines
    assert mean_bytes(convert, "200\n100 0.5\n300 1\n") == pytest.approx(200, rel=0.02)
    # The mean of a linear table is taken for what it states.
    assert mean_bytes(convert, "150\n100 0.5\n300 1\n") == pytest.approx(150.25, rel=0.02)


def test_rows_that_homa_never_draws_are_skipped(convert: Convert) -> None:
    # The row of 200 is below an earlier value, which leaves 0.5 * 100 + 0.5 * 300 packets.
    text = "200\n100 0.5\n200 0.4\n300 1\n"
    assert mean_bytes(convert, text, unit="packets") == pytest.approx(200 * 1442, rel=0.02)
    lines = convert({"homa.txt": text}).lines
    assert "homa.txt: 1 row below an earlier cumulative value, never drawn" in lines
    wrong = convert({"homa.txt": "9000\n100 0.5\n300 1\n"}).lines
    assert "homa.txt: the first line states a mean of 9000, unlike the table" in wrong


def test_the_time_limit_leaves_time_for_all_flows(convert: Convert, tmp_path: Path) -> None:
    imported = convert({"sizes.txt": "0 0\n20000000 1\n"})
    # 1000 flows of 10 MB at a load of 0.3 take 26.7 s at 10 Gb/s, with a deviation of 3 %.
    (line,) = [line for line in imported.lines if line.startswith("the flows arrive")]
    assert re.fullmatch(r"the flows arrive within 2[5-9](\.\d)? s; the time limit is 6\d s", line)
    for seed in (1, 2, 3):
        scenario = sojourn.read(write(imported, tmp_path)) | {"seed": seed}
        assert len(flow_table(encoding.trace(scenario))) == 1000
    # The same in a network and on a link whose rate is that of a trace.
    topology = "3 1 2\n2\n0 2 1Mbps 1us 0\n1 2 1Mbps 1us 0\n"
    for files in ({"topology.txt": topology}, {"rates": "0 1\n1 0.5\n2 0.7\n"}):
        imported = convert({**files, "sizes.txt": "0 0\n20000 1\n"})
        scenario = sojourn.read(write(imported, tmp_path))
        assert len(flow_table(encoding.trace(scenario))) == 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 0\n5 1\n", "s.txt:2: sizes and cumulative values must not fall from row to row"),
        ("10 0\n20 0.9\n", "s.txt:2: the last cumulative value must be 1 or 100, not 0.9"),
        ("10 0\n20\n", "s.txt:2: expected `size cumulative` up to 1 or 100"),
        ("10 0\nten 1\n", "s.txt:2: expected `size cumulative` up to 1 or 100"),
        ("0 0\n1 1\n", "s.txt: the mean size must be 1 B or more, not 0.5 bytes"),
        ("0 0\n1e16 1\n", "s.txt:2: sizes must be at most 1e15, not 1e16"),
        ("-1 0\n10 1\n", "s.txt:1: expected `size cumulative` up to 1 or 100"),
    ],
)
def test_errors_name_the_line_and_the_shape(text: str, expected: str, convert: Convert) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"s.txt": text}, names=["sizes"])
    assert expected in str(error.value)
