"""Capacity of links with rate traces: the same as in the simulator's utilisation."""

from typing import Any

import numpy as np
import pytest

from sojourn.analysis import capacity
from sojourn.runs.runner import run_many

TABLE = "# a pause\ntime_s, rate_bps\n0, 40e6\n\n1, 0\n1.5, 10e6\n"
OPPORTUNITIES = "0\n3\n3\n5\n"


def test_a_table_holds_its_rates_until_the_next_row() -> None:
    bits = capacity.carried(TABLE)(np.array([0, 0.5, 1, 1.2, 1.5, 3]))
    assert bits == pytest.approx([0, 20e6, 40e6, 40e6, 40e6, 55e6])


def test_opportunities_carry_a_packet_in_the_millisecond_before_them_and_repeat() -> None:
    bits = capacity.carried(OPPORTUNITIES)(np.array([0, 2, 2.5, 3, 4, 5, 5 + 3, 15]) / 1000)
    assert bits / capacity.OPPORTUNITY == pytest.approx([0, 0, 1, 2, 2, 4, 4 + 2, 12])


@pytest.mark.parametrize("text", [TABLE, OPPORTUNITIES])
@pytest.mark.parametrize("place", ["topology", "rate_traces"])
def test_utilisation_is_that_of_the_summary(text: str, place: str) -> None:
    file = {"name": "rates", "text": text}
    topology = {"kind": "link", "delay": "5 ms"}
    scenario: dict[str, Any] = {
        "transport": "cubic",
        "time_limit": "2 s",
        "topology": topology | ({"rate_trace": file} if place == "topology" else {}),
        "rate_traces": [{"link": "left->right", "file": file}] if place == "rate_traces" else [],
        "workload": {"kind": "long_lived", "flows": 1},
    }
    (result,) = run_many([scenario])
    ((name, carried),) = capacity.traced_links(result.summary["scenario"]).items()
    (link,) = (link for link in result.summary["links"] if link["name"] == name)
    bits = carried(np.array([result.summary["simulated_s"]]))[0]
    assert 8 * link["bytes"] / bits == pytest.approx(link["utilisation"])
