"""Import of rate traces of Mahimahi and Pensieve."""

from pathlib import Path

import pytest

import sojourn
from imports.conftest import Convert, write

PENSIEVE = "0.0\t4.5\n1.0\t2.25\n2.0\t0.5\n3.5\t6\n"


def test_traces_of_mahimahi_set_both_directions(convert: Convert, tmp_path: Path) -> None:
    up, down = "0\n0\n2\n2\n5\n", "1\n"
    imported = convert({"up": up, "down": down})
    assert imported.texts["rates1.trace"] == up
    assert imported.texts["rates2.trace"] == down
    # Five packets of 12 kb in 5 ms.
    assert imported.lines[0] == ("up: 5 packets of 1500 B in 0.005 s, which repeats; mean 12 Mb/s")
    scenario = sojourn.read(write(imported, tmp_path))
    assert [entry["link"] for entry in scenario["rate_traces"]] == ["left->right", "right->left"]
    links = ["left->right"]
    change = {"time_limit": "2 s", "samples": {"interval": "1 s", "links": links}}
    result = sojourn.run(scenario | change)
    sent = result.samples.filter(probe="transmitted_bytes left->right")["value"].to_list()
    # 1000 packets in a second at most.
    assert 0.9 * 1.5e6 < sent[-1] - sent[-2] <= 1.5e6 + 1500


@pytest.mark.parametrize("text", ["1.0\n2.0\n", "1,\n2,\n", "+1\n2e0\n", "# ms\n\n 1\n2"])
def test_traces_of_mahimahi_have_plain_integers(text: str, convert: Convert) -> None:
    assert convert({"up": text}).texts["rates.trace"] == "1\n2\n"


def test_a_trace_can_set_any_link_of_a_topology(convert: Convert) -> None:
    topology = "3 1 2\n2\n0 2 25Gbps 1us 0\n1 2 25Gbps 1us 0\n"
    files = {"topology.txt": topology, "down": "1\n"}
    imported = convert(files, links=["s2->h1"])
    assert (
        'rate_traces = [{ link = "s2->h1", file = "rates.trace" }]'
        in (imported.texts["scenario.toml"])
    )
    with pytest.raises(sojourn.ScenarioError, match=r"^--link: needed for each rate trace"):
        convert(files)
    with pytest.raises(sojourn.ScenarioError, match=r"there is no link `s2->h2`; did you mean"):
        convert(files, links=["s2->h2"])


def test_rows_of_seconds_and_rates_hold_after_or_before_their_time(convert: Convert) -> None:
    after = convert({"cooked.txt": PENSIEVE})
    assert after.texts["rates.csv"] == (
        "time_s,rate_bps\n0,4500000\n1,2250000\n2,500000\n3.5,6000000\n"
    )
    # (4.5 + 2.25 + 1.5 * 0.5) Mb in 3.5 s.
    assert "cooked.txt: 4 rows over 3.5 s, read as seconds and Mb/s; mean 2.143 Mb/s" in after.lines
    before = convert({"cooked.txt": PENSIEVE}, rates_hold="before")
    assert before.texts["rates.csv"] == "time_s,rate_bps\n0,2250000\n1,500000\n2,6000000\n"
    late = convert({"cooked.txt": "0.5 4\n1.5 2\n"}, rates_hold="before")
    assert late.texts["rates.csv"] == "time_s,rate_bps\n0,4000000\n0.5,2000000\n"


def test_times_of_another_clock_are_counted_from_the_first_row(convert: Convert) -> None:
    uptime, note = "86400 5\n86401 1\n86402 5\n", "times are counted from the first row, at 86400 s"
    after = convert({"up.txt": uptime})
    assert after.texts["rates.csv"] == "time_s,rate_bps\n0,5000000\n1,1000000\n2,5000000\n"
    assert f"up.txt: {note}" in after.lines
    assert "up.txt: 3 rows over 2 s, read as seconds and Mb/s; mean 3 Mb/s" in after.lines
    before = convert({"up.txt": uptime}, rates_hold="before")
    assert before.texts["rates.csv"] == "time_s,rate_bps\n0,1000000\n1,5000000\n"
    assert f"up.txt: {note}" in before.lines
    packets = convert({"up": "86400000\n86400001\n"})
    assert "up: the link sends nothing before 86400 s: Mahimahi counts from 0" in str(packets.lines)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0 2\n3 1\n", 60), ("0 2\n30 1\n299.5 2\n", 300), ("0 2\n30 1\n60 2\n9000 2\n", 3600)],
)
def test_the_time_limit_follows_from_the_trace(text: str, limit: int, convert: Convert) -> None:
    imported = convert({"short": "1\n", "long": text})
    assert f'time_limit = "{limit} s"' in imported.texts["scenario.toml"]
    assert f"no flows were imported; one long-lived flow, for {limit} s" in imported.lines


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("0\n0\n", "mahimahi", "t: the last line ends the trace, and must be above 0"),
        ("2\n1\n", "mahimahi", "t:2: expected a line with a whole number of milliseconds"),
        ("1\n1.5\n", "mahimahi", "t:2: expected a line with a whole number of milliseconds"),
        ("1\n4e12\n", "mahimahi", "t:2: milliseconds must be at most 18446744073, not 4000"),
        ("1 2\n1 3\n", "pensieve", "t:2: times must ascend from row to row"),
        ("1 2\n2 -3\n", "pensieve", "t:2: expected `seconds rate` on each line"),
        ("1 2\n2 3 4\n", "pensieve", "t:2: expected `seconds rate` on each line"),
        ("1 2\n2 0\n", "pensieve", "t: the last rate holds until the end of a run, and must be"),
    ],
)
def test_errors_name_the_line_and_the_shape(
    text: str, kind: str, expected: str, convert: Convert
) -> None:
    with pytest.raises(sojourn.ScenarioError) as error:
        convert({"t": text}, names=[kind])
    assert expected in str(error.value)
