"""Tests of FCT breakdowns and their comparison."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from conftest import BREAKDOWN
from sojourn import (
    ScenarioError,
    accounts,
    convergence,
    metrics,
    over_seeds,
    plot,
    sweep,
)
from sojourn.analysis.breakdown import LABELS, PARTS, TOTAL
from sojourn.analysis.chains import pieces
from sojourn.explain import tables


def test_every_breakdown_column_belongs_to_one_part(breakdowns: list[sojourn.Run]) -> None:
    columns = accounts.columns_of(breakdowns[0].result.account)
    parts = {accounts.part_of(column) for column in columns}
    assert parts == set(PARTS) - {accounts.SHARED}, "only ideals have `shared`"
    assert accounts.split("recovery_timeout_sender_ps") == ("recovery_timeout", "sender")
    assert accounts.part_of("window_queue_others_there_ps") == accounts.OTHERS
    assert accounts.part_of("window_receiver_ps") == accounts.ROUND_TRIPS
    with pytest.raises(ValueError, match=r"fct_ps.*not a column"):
        accounts.part_of("fct_ps")


def test_parts_add_up_to_the_fct_and_excess_parts_to_fct_less_ideal(
    breakdowns: list[sojourn.Run],
) -> None:
    for run in breakdowns:
        flows = accounts.divided(run.result)
        error = flows.select(pl.sum_horizontal(*PARTS) - pl.col("fct_s")).to_series()
        assert float(error.abs().max()) < 1e-12  # type: ignore[arg-type]
        excess = accounts.divided(run.result, excess=True)
        error = excess.select(
            pl.sum_horizontal(*PARTS) - pl.col("fct_s") + pl.col("ideal_fct_s")
        ).to_series()
        assert float(error.abs().max()) < 1e-12  # type: ignore[arg-type]
        least = excess.select(pl.min_horizontal(*PARTS)).to_series()
        assert float(least.min()) > -1e-12  # type: ignore[arg-type]
    table = accounts.by_size(breakdowns)
    for part in table.partition_by("transport", "size"):
        values = dict(zip(part["metric"], part["value"], strict=True))
        assert sum(values[name] for name in PARTS) == pytest.approx(values[TOTAL])


def test_tail_loss_probes_are_loss_timers_but_not_timeouts() -> None:
    topology = {"kind": "dumbbell", "rate": "20 Mbps", "delay": "5 ms", "loss": 0.03}
    sizes = {"kind": "fixed", "size": "30 KB"}
    scenario: dict[str, Any] = {
        **{"environment": "internet", "topology": topology, "transport": "tcp"},
        "workload": {"kind": "poisson", "load": 0.3, "flows": 200, "sizes": sizes},
        **{"time_limit": "60 s", "account": True},
    }
    result = sojourn.run(scenario)
    flows = result.flows.join(
        accounts.divided(result).select("flow", accounts.TIME_OUTS), on="flow"
    )
    probed = flows.filter(pl.col(accounts.TIME_OUTS) > 0, pl.col("timeouts") == 0)
    assert not probed.is_empty()
    assert LABELS[accounts.TIME_OUTS] == "loss timers"


def test_transmission_time_is_not_excess_even_during_nic_waits_or_pacing() -> None:
    flow = {"source": 0, "target": 3, "size": "1 MB"}
    single_flow = BREAKDOWN | {"workload": {"kind": "flows", "flows": [flow]}}

    def excess(transport: object) -> dict[str, float]:
        flows = accounts.divided(sojourn.run(single_flow | {"transport": transport}), excess=True)
        (parts,) = flows.select("fct_s", "ideal_fct_s", *PARTS).to_dicts()
        total = sum(parts[name] for name in PARTS)
        assert total == pytest.approx(parts["fct_s"] - parts["ideal_fct_s"], abs=1e-12)
        return {name: parts[name] for name in PARTS if abs(parts[name]) > 1e-12}

    # At line rate no excess remains; at half the line rate, half of the time is pacing.
    assert excess("constant_rate") == {}
    slow = excess({"kind": "constant_rate", "rate": "500 Mbps"})
    assert slow == {accounts.PACE: pytest.approx(1e6 * 8 * 1500 / 1460 / 1e9, rel=0.02)}
    # Windows of a bandwidth-delay product cause no excess, smaller windows only window waits.
    assert set(excess("tcp")) == {accounts.HANDSHAKE}
    small = excess({"kind": "tcp", "window": {"max": 1}})
    assert set(small) == {accounts.HANDSHAKE, accounts.ROUND_TRIPS}


def test_differences_by_part_equal_the_differences_of_mean_parts(
    breakdowns: list[sojourn.Run],
) -> None:
    table = accounts.differences(breakdowns, "transport")
    assert table["transport"].unique().to_list() == ["timely"]
    means = accounts.by_size(breakdowns)

    def mean(scheme: str, part: str) -> float:
        return metrics.at(means, transport=scheme, size="all", metric=part)

    for name in (TOTAL, accounts.PACE, accounts.OTHERS):
        difference = metrics.at(table, size="all", metric=name)
        assert difference == pytest.approx(mean("timely", name) - mean("dctcp", name), abs=1e-12)
    assert metrics.at(table, size="all", metric=accounts.PACE) > 0
    with pytest.raises(ScenarioError, match="dctpc"):
        accounts.differences(breakdowns, "transport", "dctpc")


def test_differences_of_one_seed_have_intervals_by_batches(breakdowns: list[sojourn.Run]) -> None:
    one_seed = [run for run in breakdowns if run.labels["seed"] == 1]
    table = accounts.differences(one_seed, "transport")
    dctcp, timely = (accounts.divided(run.result).sort("start_s") for run in one_seed)
    assert dctcp["flow"].equals(timely["flow"])
    for name, column in ((TOTAL, "fct_s"), (accounts.OTHERS, accounts.OTHERS)):
        expected = convergence.batch_means((timely[column] - dctcp[column]).to_numpy())
        row = table.filter(size="all", metric=name).row(0, named=True)
        assert (row["value"], row["low"], row["high"]) == pytest.approx(expected)


def test_equal_parts_differ_by_zero_and_not_by_rounding_errors() -> None:
    changes = {"time_limit": "3 ms", "workload.load": 0.9, "topology.delay": "10 us"}
    base = sojourn.override(BREAKDOWN, {**changes, "topology.senders": 6, "topology.receivers": 6})
    base = {name: value for name, value in base.items() if name != "environment"}
    labelled = [
        ({"transport": kind}, sojourn.override(base, {"transport": kind}))
        for kind in ("tcp", "dctcp")
    ]
    table = accounts.differences(sweep(over_seeds(labelled, 4)), "transport").filter(size="all")
    small = table.filter(pl.col("value").abs() < 1e-13)
    assert not small.is_empty()
    assert (small["value"] == 0).all()
    assert (small["low"] == small["high"]).all()


def test_different_flows_are_compared_by_means_without_intervals() -> None:
    sizes = BREAKDOWN | {"workload": {**BREAKDOWN["workload"], "flows": 60}}
    labelled = [
        ({"load": load}, sojourn.override(sizes, {"workload.load": load})) for load in (0.3, 0.7)
    ]
    runs = sweep(over_seeds(labelled, 1))
    table, means = accounts.differences(runs, "load"), accounts.by_size(runs)
    for size in ("all", "≤ 100 KB"):
        few, many = (metrics.at(means, load=load, size=size, metric=TOTAL) for load in (0.3, 0.7))
        row = table.filter(size=size, metric=TOTAL).row(0, named=True)
        assert row["value"] == pytest.approx(many - few)
        assert row["low"] != row["low"], "no pairs, no interval"
        assert not row["same_flows"]


IDEALS = ("processor_sharing", "srpt", "max_min", "omniscient")


@pytest.fixture(scope="module")
def ideals() -> list[sojourn.Run]:
    """DCTCP and ideals on the same flows."""
    models = ["packet", *IDEALS, "alone"]
    return sweep(over_seeds([({"model": kind}, BREAKDOWN | {"model": kind}) for kind in models], 1))


def test_the_fct_of_an_ideal_is_ideal_fct_and_sharing(ideals: list[sojourn.Run]) -> None:
    for run in ideals[1:]:
        flows = accounts.divided(run.result)
        assert flows[accounts.FLIGHT].equals(flows["ideal_fct_s"], check_names=False)
        shared = flows["fct_s"] - flows["ideal_fct_s"]
        assert flows[accounts.SHARED].to_list() == shared.to_list()
        assert (shared.max() > 0) == (run.labels["model"] != "alone")  # type: ignore[operator]
        rest = flows.select(pl.sum_horizontal(set(PARTS) - {accounts.FLIGHT, accounts.SHARED}))
        assert rest.to_series().abs().max() == 0
        excess = accounts.divided(run.result, excess=True)
        error = excess.select(pl.sum_horizontal(*PARTS) - pl.col(accounts.SHARED)).to_series()
        assert error.abs().max() == 0
    assert accounts.divided(ideals[0].result)[accounts.SHARED].max() == 0
    shortest = min(ideals[1:-1], key=lambda run: accounts.divided(run.result)["shared"].sum())
    assert shortest.labels["model"] in {"srpt", "omniscient"}


def test_unfinished_flows_of_an_ideal_are_excluded() -> None:
    short = {"model": "processor_sharing", "time_limit": "20 ms"}
    result = sojourn.run(BREAKDOWN | short)
    flows = accounts.divided(result)
    assert 0 < flows.height < result.flows.height
    assert flows["fct_s"].null_count() == 0
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BREAKDOWN | short | {"account": False}))


def test_differences_of_a_transport_from_an_ideal_are_parts_of_the_excess(
    ideals: list[sojourn.Run],
) -> None:
    table = accounts.differences(ideals, "model", "processor_sharing")
    excess = accounts.divided(ideals[0].result, excess=True)
    ideal = accounts.divided(ideals[1].result)

    def difference(model: str, part: str) -> float:
        return metrics.at(table, model=model, size="all", metric=part)

    for part in (accounts.OTHERS, accounts.OWN, accounts.ROUND_TRIPS):
        assert difference("packet", part) == pytest.approx(excess[part].mean())
    shared: float = ideal[accounts.SHARED].mean()  # type: ignore[assignment]
    assert difference("packet", accounts.SHARED) == pytest.approx(-shared)
    parts = sum(difference("packet", part) for part in PARTS)
    assert parts == pytest.approx(difference("packet", TOTAL))
    assert difference("srpt", accounts.SHARED) == pytest.approx(difference("srpt", TOTAL))


def test_shares_of_places_add_up_to_one(breakdowns: list[sojourn.Run]) -> None:
    shares = accounts.places(breakdowns[:2], accounts.OTHERS)
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert all("queue_others" in column for column in shares)


@pytest.mark.parametrize("horizontal", [False, True])
def test_stacked_bars_add_up_to_the_parts_and_negative_parts_are_below_zero(
    horizontal: bool,
) -> None:
    heights = pl.DataFrame({part: [0.0, 0.0] for part in PARTS}).with_columns(
        pl.Series(accounts.PACE, [2.0, 1.0]), pl.Series(accounts.OWN, [1.0, -3.0])
    )
    with plot.canvas() as (_, axes):
        accounts.stack(axes, [0, 1], heights, horizontal=horizontal)
        corners = [bar.get_bbox().get_points() for bar in axes.patches]
        length, place = (0, 1) if horizontal else (1, 0)
        ends = [(first[length], last[length], first[place]) for first, last in corners]
        entries = axes.get_legend_handles_labels()[1]
    for left, bottom, top in ((-0.4, 0, 3), (0.6, -3, 1)):
        spans = [(min(start, end), max(start, end)) for start, end, x in ends if x == left]
        assert min(low for low, _ in spans) == bottom
        assert max(high for _, high in spans) == top
    assert entries == [LABELS[part] for part in PARTS]


def test_results_without_breakdowns_are_an_error() -> None:
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BREAKDOWN | {"account": False}))


def test_the_breakdown_of_one_flow_adds_up_to_its_fct(breakdowns: list[sojourn.Run]) -> None:
    result = breakdowns[0].result
    rows = tables.flow_table(result, 7)
    total = sum(float(row[2].removesuffix(" s")) for row in rows.rows)
    fct = result.flows.filter(flow=7)["fct_s"][0]
    assert total == pytest.approx(fct, abs=1e-9 * len(rows.rows))


def test_flows_of_a_connection_wait_for_earlier_ones() -> None:
    scenario = {
        "topology": {"kind": "star", "hosts": 3, "rate": "10 Gbps", "delay": "5 us"},
        "transport": "dctcp",
        "workload": {
            "kind": "rpc",
            "request": {"kind": "uniform", "min": "1 KB", "max": "100 KB"},
            "response": {"kind": "fixed", "size": "1 KB"},
            "pattern": {"outstanding": 4, "calls": 200, "connections": 1},
        },
        "account": True,
        "account_flows": [20],
    }
    result = sojourn.run(scenario)
    flows, excess = accounts.divided(result), accounts.divided(result, excess=True)
    assert flows.height > 300
    waits, fcts = flows[accounts.CONNECTION].to_numpy(), flows["fct_s"].to_numpy()
    assert waits.sum() > 0.05 * fcts.sum()
    error = flows.select(pl.sum_horizontal(*PARTS) - pl.col("fct_s")).to_series()
    assert (error.abs() < 1e-12).all()
    least = excess.select(pl.min_horizontal(*PARTS)).to_series()
    assert (least > -1e-12).all()
    assert pieces(result, 20)["lasts_s"].sum() == pytest.approx(flows.row(20, named=True)["fct_s"])


def test_the_page_of_outputs_maps_all_names_of_causes() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "outputs.md").read_text(encoding="utf-8")
    for part in PARTS:
        assert f"| {LABELS[part]} | `{part}` | " in page
