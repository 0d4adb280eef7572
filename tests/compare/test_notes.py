"""Notes on the ratios of a comparison."""

from typing import Any

import sojourn
from sojourn.compare import paired_tables

BASE: dict[str, Any] = {
    "topology": {"kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "10 Gbps"},
    "transport": "dctcp",
    "workload": {
        "kind": "poisson",
        "load": 0.3,
        "flows": 40,
        "sizes": {"kind": "fixed", "size": "20 KB"},
    },
}


def notes(variations: dict[str, Any]) -> list[str]:
    compared = sojourn.comparison(BASE, variations)
    return paired_tables.notes(compared.pairs, compared.by, compared.runs)


def test_a_note_names_the_schemes_whose_flows_differ_and_the_cause() -> None:
    _, note = notes({"environment": ["lossy_datacentre", "lossless_datacentre"]})
    assert note.startswith(
        "note: some flows of lossless_datacentre differ from those of lossy_datacentre "
        "(packet headers of another environment change the flows that a load offers)"
    )


def test_batches_are_named_only_with_an_interval() -> None:
    first, note = notes({"topology.rate": ["1 Gbps", "10 Gbps"]})
    assert first == "ratios to 1 Gbps, one seed each"
    assert "other networks" in note
    first, *others = notes({"transport": ["dctcp", "swift"]})
    assert first.endswith("by ten batches of the run's flows")
    assert not others
