"""Tests of the figures of ExpressPass: marks at every rate, and the time of convergence."""

import importlib
from types import ModuleType

import pytest

from sojourn import override, run


def module(name: str) -> ModuleType:
    """Import a module of the figures."""
    return importlib.import_module(f"sojourn.experiments.expresspass_sigcomm17.{name}")


@pytest.mark.parametrize("gbps", [10, 100])
def test_dctcp_is_marked_before_its_queue_is_full(gbps: int) -> None:
    paper = module("paper")
    flows = {"workload": {"kind": "long_lived"}, "time_limit": "5 ms"}
    shared = override(paper.dumbbell(2, gbps), {"environment": "paper", **flows})
    counts = run(override(shared, paper.schemes(gbps)[paper.DCTCP])).summary["counts"]
    assert counts["marks"] > 0
    assert counts["drops"] == 0
