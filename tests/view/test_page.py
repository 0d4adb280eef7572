"""First lines of pages: the counts of a run."""

from typing import Any

from sojourn.runs.results import Run
from sojourn.runs.runner import run_many
from sojourn.view import page

INCAST: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 9, "rate": "40 Gbps", "delay": "1 us"},
    "workload": {"kind": "incast", "fan_in": 8, "size": "400 KB", "events": 4, "interval": "1 ms"},
}
NDP = INCAST | {
    "transport": "ndp",
    "routing": "spray_random",
    "packet": {"payload": "1436 B", "header": "64 B", "ack": "64 B"},
    "queue": {"kind": "composite", "capacity": "8 packets"},
}
PFC = INCAST | {
    "transport": "dcqcn",
    "environment": "lossless_datacentre",
    "switch": {"shared_buffer": "2 MB", "pause": {"alpha": 0.125}},
}


def test_trims_and_pauses_are_counted_where_they_happen() -> None:
    for scenario, name, other in ((NDP, "trims", "pauses"), (PFC, "pauses", "trims")):
        (result,) = run_many([scenario])
        count = result.summary["counts"][name]
        assert count > 0
        text = page.render([Run({"scheme": "one"}, result)], source="one.toml")
        assert f'"{count} {name}"' in text
        assert f' {other}"' not in text
