"""Import of schedules of the format GOAL."""

from pathlib import Path

import pytest

import sojourn
from imports.conftest import Convert, write

RING = """// Two steps of a ring.
num_ranks 3
rank 0 {
c: calc 1000
s1: send 1000b to 1 tag 1
s1 requires c
r1: recv 1000b from 2 tag 1
s2: send 1000b to 1 tag 2 cpu 0 nic 0
s2 requires r1
recv 1000b from 2 tag 2
}
rank 1 {
s1: send 1000b to 2 tag 1
r1: recv 1000b from 0 tag 1
/* reduces
   the chunk */
c: calc 500
c requires r1
late: calc 20000
s2: send 1000b to 2 tag 2
s2 requires c
s2 requires s1
s2 requires late
recv 1000b from 0 tag 2
}
rank 2 { // a comment
s1: send 1000b to 0 tag 1
r1: recv 1000b from 1 tag 1
s2: send 1000b to 0 tag 2
s2 irequires r1
recv 1000b from 1 tag 2
}
"""


def test_operations_become_flows_after_others(convert: Convert) -> None:
    imported = convert({"ring.goal": RING})
    assert imported.texts["flows.csv"].splitlines() == [
        "start_s,source,target,size_bytes,after",
        # Those of ranks 1 and 2 start at once; a recv is begun at once, too.
        "0,1,2,1000,",
        "0,2,0,1000,",
        "0,2,0,1000,",
        "0.000001,0,1,1000,",
        "0,1,2,1000,0 3+0.0000005 +0.00002",
        "0,0,1,1000,1",
    ]
    assert "ring.goal: 6 flows, 2 flows after other flows" in "\n".join(imported.lines)


def test_an_imported_schedule_runs(convert: Convert, tmp_path: Path) -> None:
    result = sojourn.run(write(convert({"ring.goal": RING}), tmp_path))
    flows = result.flows.sort("flow")
    ends = flows["start_s"] + flows["fct_s"]
    assert flows["start_s"][4] == pytest.approx(2e-5)
    assert flows["start_s"][5] == pytest.approx(ends[1])
    assert result.summary["counts"]["finished"] == 6


def test_the_time_limit_includes_computations_between_flows(
    convert: Convert, tmp_path: Path
) -> None:
    # Computations of 12 s, 20 s and 12 s, each before the next message.
    text = (
        "num_ranks 2\nrank 0 {\nc1: calc 12000000000\ns1: send 8b to 1\ns1 requires c1\n"
        "r: recv 8b from 1\nc2: calc 12000000000\nc2 requires r\ns2: send 8b to 1\n"
        "s2 requires c2\n}\nrank 1 {\nr: recv 8b from 0\nc: calc 20000000000\nc requires r\n"
        "s: send 8b to 0\ns requires c\nrecv 8b from 0\n}\n"
    )
    imported = convert({"long.goal": text})
    assert 'time_limit = "54 s"' in imported.texts["scenario.toml"]
    result = sojourn.run(write(imported, tmp_path))
    assert result.summary["counts"]["finished"] == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_ranks 3", "num_ranks 0", "expected `num_ranks N`"),
        ("rank 1 {", "rank 0 {", r":12: rank 0: appears twice"),
        ("rank 1 {", "rank 3 {", r":12: rank 3: the ranks are 0 to 2"),
        ("s1 requires c", "s1 requires d", r":6: rank 0 has no label `d`"),
        ("s1 requires c", "s1 requires s1", r":5: requires itself"),
        ("calc 500", "calc soon", r"expected `num_ranks N`"),
        ("calc 500", f"calc {10**17}", r":20: starts at 100000000 s; a run has at most 9000000"),
        ("recv 1000b from 2 tag 1", "recv 1000b from -1", r"any rank \(-1\) cannot"),
        ("recv 1000b from 2 tag 1", "recv 999b from 2 tag 1", r"its send has 1000 bytes"),
        ("recv 1000b from 2 tag 1", "calc 1", "1 send and 0 recvs"),
        ("send 1000b to 1 tag 1", "send 1000b to 0 tag 1", "expected another rank from 0 to 2"),
        ("tag 2 cpu 0 nic 0", "tag 2 gpu 0", "numbers after tag, cpu, nic, not `gpu`"),
        ("late: calc", "c: calc", "the label `c` is invalid, or appears twice"),
        ("recv 1000b from 1 tag 2\n}", "recv 1000b from 1 tag 2\n", "ends within rank 2"),
    ],
)
def test_errors_name_the_line(convert: Convert, old: str, new: str, message: str) -> None:
    assert old in RING
    with pytest.raises(sojourn.ScenarioError, match=message) as error:
        convert({"ring.goal": RING.replace(old, new, 1)})
    assert "\n" not in str(error.value)


def test_ranks_that_wait_for_each_other_are_an_error(convert: Convert) -> None:
    rank = "rank {0} {{\nr: recv 8b from {1}\ns: send 8b to {1}\ns requires r\n}}\n"
    text = "num_ranks 2\n" + rank.format(0, 1) + rank.format(1, 0)
    with pytest.raises(sojourn.ScenarioError, match=r":4: waits for itself, through messages"):
        convert({"deadlock.goal": text})
