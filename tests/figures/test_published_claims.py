"""Claims of published figures, and the runs on which they are judged."""

import pytest

from sojourn.base import paths
from sojourn.figures import discovery


@pytest.mark.parametrize("name", ["f13", "k1", "k2", "k3", "f29"])
def test_claims_of_the_source_are_not_judged_on_too_few_flows(name: str) -> None:
    figure = discovery.discover(paths.EXPERIMENTS)[name]
    scales = {claim.scales for claim in figure.claims if claim.kind == "stated"}
    assert scales == {("paper",)}


@pytest.mark.parametrize("name", ["j1", "j2", "j3"])
def test_claims_at_quick_concern_only_the_workload_that_reaches_its_load(name: str) -> None:
    claims = discovery.discover(paths.EXPERIMENTS)[name].claims
    at_quick = [claim.statement for claim in claims if "quick" in claim.scales]
    assert all(statement.startswith("W1:") for statement in at_quick)


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_the_long_flow_has_a_host_of_its_own_unless_all_hosts_send(scale: str) -> None:
    figure = discovery.discover(paths.EXPERIMENTS)["f11"]
    for labels, scenario in figure.plan(scale):
        long, *incast = (flow["source"] for flow in scenario["workload"]["flows"])
        assert len(set(incast)) == labels["fan_in"]
        assert (long in incast) == (labels["fan_in"] == 255)


def test_claims_that_a_full_link_decides_are_checks() -> None:
    kinds = {
        claim.kind
        for claim in discovery.discover(paths.EXPERIMENTS)["f11"].claims
        if claim.statement.startswith("255-to-1") and "least throughput" in claim.statement
    }
    assert kinds == {"check"}
