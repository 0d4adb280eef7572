"""Tests of what `run` and `explain` print on jobs."""

import sojourn
from sojourn import Run
from sojourn.explain import tables
from sojourn.show import console
from sojourn.show.result import result_tables

SCENARIO = {
    "environment": "paper",
    "topology": {"kind": "star", "hosts": 4, "rate": "10 Gbps", "delay": "1 us"},
    "transport": "dctcp",
    "account": True,
    "workload": {"kind": "collective", "algorithm": "ring", "ranks": 4, "size": "4 MB"},
}


def test_a_sentence_names_the_flow_that_a_critical_path_waited_for() -> None:
    result = sojourn.run(SCENARIO)
    (line,) = tables.job_sentences([Run({}, result)], [])
    assert line.startswith("collective takes 5")
    assert "of its bound; its critical path of 6 flows waited most for " in line
    assert ", flow " in line
    assert " from host " in line
    ideal = sojourn.run({**SCENARIO, "model": "alone"})
    assert tables.job_sentences([Run({}, ideal)], []) == [
        "collective takes 5.01 ms, 1.00 of its bound"
    ]


def test_the_summary_of_a_run_has_a_table_of_jobs() -> None:
    result = sojourn.run({**SCENARIO, "model": "alone"})
    with console.console.capture() as capture:
        console.console.print(result_tables(result), width=200)
    rows = [line.split() for line in capture.get().splitlines()]
    heading = next(i for i, row in enumerate(rows) if row[:2] == ["job", "ranks"])
    assert rows[heading + 2][:5] == ["collective", "4", "6", "24", "0"]
    assert "1.00" in rows[heading + 2]
