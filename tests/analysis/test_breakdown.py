"""Tests of FCT breakdowns, their comparison, and the output of `sojourn explain`."""

import itertools
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn
from sojourn import (
    ScenarioError,
    accounts,
    cli,
    convergence,
    metrics,
    over_seeds,
    pairs,
    plot,
    sweep,
)
from sojourn.analysis.breakdown import PARTS, TOTAL
from sojourn.analysis.chains import of_runs, pieces
from sojourn.base import units
from sojourn.compare import comparison, paired_tables
from sojourn.compare import plot as comparison_plot
from sojourn.explain import rpc_plot, tables, waterfall
from sojourn.show import intervals
from sojourn.show.parts import breakdown_tables, significant_metrics

BASE = {
    "environment": "paper",
    "topology": {
        "kind": "dumbbell",
        "senders": 3,
        "receivers": 3,
        "rate": "1 Gbps",
        "delay": "5 us",
    },
    "transport": "dctcp",
    "workload": {
        "kind": "poisson",
        "load": 0.7,
        "sizes": {"kind": "uniform", "min": "1 B", "max": "200 KB"},
        "flows": 200,
    },
    "account": True,
}


@pytest.fixture(scope="module")
def runs() -> list[sojourn.Run]:
    """DCTCP and TIMELY on the same flows, four seeds."""
    labelled = [({"transport": kind}, BASE | {"transport": kind}) for kind in ("dctcp", "timely")]
    return sweep(over_seeds(labelled, 4))


def test_every_breakdown_column_belongs_to_one_part(runs: list[sojourn.Run]) -> None:
    columns = accounts.columns_of(runs[0].result.account)
    parts = {accounts.part_of(column) for column in columns}
    assert parts == set(PARTS) - {accounts.SHARED}, "only ideals have `shared`"
    assert accounts.split("recovery_timeout_sender_ps") == ("recovery_timeout", "sender")
    assert accounts.part_of("window_queue_others_there_ps") == accounts.OTHERS
    assert accounts.part_of("window_receiver_ps") == accounts.ROUND_TRIPS
    with pytest.raises(ValueError, match=r"fct_ps.*not a column"):
        accounts.part_of("fct_ps")


def test_parts_add_up_to_the_fct_and_excess_parts_to_fct_less_ideal(
    runs: list[sojourn.Run],
) -> None:
    for run in runs:
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
    table = accounts.by_size(runs)
    for part in table.partition_by("transport", "size"):
        values = dict(zip(part["metric"], part["value"], strict=True))
        assert sum(values[name] for name in PARTS) == pytest.approx(values[TOTAL])


def test_transmission_time_is_not_excess_even_during_nic_waits_or_pacing() -> None:
    flow = {"source": 0, "target": 3, "size": "1 MB"}
    single_flow = BASE | {"workload": {"kind": "flows", "flows": [flow]}}

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


def test_differences_by_part_equal_the_differences_of_mean_parts(runs: list[sojourn.Run]) -> None:
    table = accounts.differences(runs, "transport")
    assert table["transport"].unique().to_list() == ["timely"]
    means = accounts.by_size(runs)

    def mean(scheme: str, part: str) -> float:
        return metrics.at(means, transport=scheme, size="all", metric=part)

    for name in (TOTAL, accounts.PACE, accounts.OTHERS):
        difference = metrics.at(table, size="all", metric=name)
        assert difference == pytest.approx(mean("timely", name) - mean("dctcp", name), abs=1e-12)
    assert metrics.at(table, size="all", metric=accounts.PACE) > 0
    with pytest.raises(ScenarioError, match="dctpc"):
        accounts.differences(runs, "transport", "dctpc")


def test_differences_of_one_seed_have_intervals_by_batches(runs: list[sojourn.Run]) -> None:
    one_seed = [run for run in runs if run.labels["seed"] == 1]
    table = accounts.differences(one_seed, "transport")
    dctcp, timely = (accounts.divided(run.result).sort("start_s") for run in one_seed)
    assert dctcp["flow"].equals(timely["flow"])
    for name, column in ((TOTAL, "fct_s"), (accounts.OTHERS, accounts.OTHERS)):
        expected = convergence.batch_means((timely[column] - dctcp[column]).to_numpy())
        row = table.filter(size="all", metric=name).row(0, named=True)
        assert (row["value"], row["low"], row["high"]) == pytest.approx(expected)


def test_different_flows_are_compared_by_means_without_intervals() -> None:
    sizes = BASE | {"workload": {**BASE["workload"], "flows": 60}}  # type: ignore[dict-item]
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


def test_a_comparison_contains_parts_of_times_and_of_differences(runs: list[sojourn.Run]) -> None:
    varied = {"transport": ["dctcp", "timely"]}
    base = {name: value for name, value in BASE.items() if name != "account"}
    table, compared = comparison.compare(base, varied, seeds=4, account=True)
    usual = comparison.without_parts(table)
    assert usual.equals(comparison.compare(base, varied, seeds=4)[0])
    means = accounts.by_size(runs)
    assert comparison.parts_of(table, comparison.FCT_PARTS).select(means.columns).equals(means)
    slowdowns = comparison.parts_of(table, comparison.SLOWDOWN_PARTS)
    (of_all,) = slowdowns.filter(transport="dctcp", metric=TOTAL, size="all")["value"]
    all_flows = {"transport": "dctcp", "size": "all", "class": "all"}
    assert of_all == pytest.approx(metrics.at(usual, metric="slowdown mean", **all_flows))
    parts = slowdowns.filter(pl.col("metric").is_in(PARTS), transport="dctcp", size="all")
    assert parts["value"].sum() == pytest.approx(of_all)
    paired = pairs.ratios(compared, by="transport")
    differences = accounts.differences(compared, "transport")
    lines = paired_tables.sentences(paired, "transport", differences)
    assert len(lines) == 1
    shares = {name: metrics.at(differences, size="100 KB to 10 MB", metric=name) for name in PARTS}
    most = max(shares, key=lambda name: shares[name])
    total = metrics.at(differences, size="100 KB to 10 MB", metric=TOTAL)
    assert total > 0
    share = 100 * shares[most] / total
    assert f"and {share:.0f} % of the increase is {accounts.LABELS[most]}" in lines[0]


def flow_of_class(name: str, source: int, size: str) -> dict[str, object]:
    return {"source": source, "target": 3 + source, "size": size, "class": name}


TWO_CLASSES = BASE | {
    "workload": {
        "kind": "flows",
        "flows": [
            *(flow_of_class("backup", source, "1 MB") for source in range(3)),
            *(flow_of_class("query", source, "10 KB") for source in range(3)),
        ],
    }
}


@pytest.fixture(scope="module")
def classes() -> list[sojourn.Run]:
    """DCTCP and TIMELY on the same flows of two classes, each class with one size."""
    kinds = ("dctcp", "timely")
    labelled = [({"transport": kind}, TWO_CLASSES | {"transport": kind}) for kind in kinds]
    return sweep(over_seeds(labelled, 1))


def rows_of(table: pl.DataFrame, **labels: str) -> pl.DataFrame:
    return table.filter(**labels).drop("size", "class")


def test_rows_of_a_class_equal_rows_of_the_size_of_its_flows(
    runs: list[sojourn.Run], classes: list[sojourn.Run]
) -> None:
    by_size = accounts.by_size(classes, metrics.BUCKETS)
    for table, of_sizes in (
        (accounts.by_size(classes), by_size),
        (
            accounts.differences(classes, "transport"),
            accounts.differences(classes, "transport", buckets=metrics.BUCKETS),
        ),
    ):
        assert table.filter(pl.col("class") == "all").drop("class").equals(of_sizes)
        for name, size in (("backup", "100 KB to 10 MB"), ("query", "≤ 100 KB")):
            class_rows = rows_of(table, **{"class": name})
            assert class_rows.height > len(PARTS)
            assert class_rows.equals(rows_of(table, size=size))
    for run in classes:
        flows = accounts.divided(run.result).filter(pl.col("class") == "query")
        labels = {"transport": run.labels["transport"], "class": "query", "metric": accounts.OTHERS}
        assert metrics.at(accounts.by_size(classes), **labels) == pytest.approx(
            flows[accounts.OTHERS].mean()
        )
    assert "class" not in by_size.columns, "no bucket is of a class"
    assert "class" not in accounts.by_size(runs).columns, "of one class"
    assert "class" not in accounts.differences(runs, "transport").columns


def test_sentences_about_classes_equal_sentences_about_sizes(classes: list[sojourn.Run]) -> None:
    lines = tables.sentences(classes, ["transport"])
    assert len(lines) == 8, "two schemes, two sizes, two classes"
    assert lines[2] == lines[1].replace("100 KB to 10 MB", "of class backup")
    assert lines[3] == lines[0].replace("≤ 100 KB", "of class query")
    # Classes do not change the sentence of a comparison about all flows.
    paired = pairs.ratios(classes, by="transport", buckets=[metrics.ALL])
    paired = paired.with_columns(low=2.0, high=3.0)
    with_classes, without = (
        paired_tables.sentences(
            paired, "transport", accounts.differences(classes, "transport", **options)
        )
        for options in ({}, {"buckets": metrics.BUCKETS})
    )
    assert with_classes == without
    assert "% of the increase is pacing" in without[0]


def test_a_comparison_with_breakdowns_has_tables_and_bars_for_classes(
    classes: list[sojourn.Run], tmp_path: Path
) -> None:
    table, _ = comparison.compare(TWO_CLASSES, {"transport": ["dctcp", "timely"]}, account=True)
    parts = comparison.parts_of(table, comparison.FCT_PARTS)
    means = accounts.by_size(classes)
    assert parts.select(means.columns).equals(means)
    titles = [
        rows.title
        for rows in breakdown_tables(parts, ["transport"], intervals.format_duration, "parts, ")
    ]
    assert titles == [
        "parts, size: all",
        "parts, size: ≤ 100 KB",
        "parts, size: 100 KB to 10 MB",
        "parts, class: backup",
        "parts, class: query",
    ]
    comparison_plot.draw(table, tmp_path / "both")
    drawn = (tmp_path / "both.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in drawn for name in ("100 KB to 10 MB", "backup", "query"))


def largest_part(parts: dict[str, float], **ratio: float) -> str:
    """Return the words of a comparison about a difference with these parts."""
    labels = {"transport": "swift", "size": "≤ 100 KB"}
    rows = [{**labels, "metric": name, "value": value} for name, value in parts.items()]
    row = {**labels, "class": "all", "value": 0.7, "low": 0.6, "high": 0.8} | ratio
    return paired_tables.Parts(["transport"], pl.DataFrame(rows)).largest(row)


def test_the_sentence_of_a_difference_names_its_largest_part() -> None:
    saved = {TOTAL: -10.0, accounts.OTHERS: -8.0, accounts.PACE: -2.0}
    assert largest_part(saved) == ", and 80 % of the reduction is cross-traffic queueing"
    lost = {TOTAL: 10.0, accounts.OTHERS: -2.0, accounts.PACE: 12.0}
    expected = ", and 120 % of the increase is pacing (offset by 20 % cross-traffic queueing)"
    assert largest_part(lost) == expected
    assert not largest_part(saved, low=0.6, high=1.1), "not a significant difference"


RPC = BASE | {
    "workload": {
        "kind": "rpc",
        "request": {"kind": "fixed", "size": "64 KB"},
        "response": {"kind": "uniform", "min": "1 B", "max": "10 KB"},
        "service": "20 us",
        "pattern": {"outstanding": 2, "calls": 60},
    }
}


def test_parts_of_a_call_add_up_to_its_latency() -> None:
    result = sojourn.run(RPC)
    answered = accounts.of_calls(result)
    assert answered.height == 60
    legs = [f"{leg}: {part}" for leg in ("request", "response") for part in PARTS]
    error = answered.select(pl.sum_horizontal(*legs, "server") - pl.col("latency_s")).to_series()
    assert float(error.abs().max()) < 1e-12  # type: ignore[arg-type]
    assert answered["server"].to_list() == pytest.approx([20e-6] * 60, abs=1e-12)
    requests = result.flows.join(answered, left_on="flow", right_on="request", how="semi")
    assert answered["request_s"].equals(requests["fct_s"], check_names=False)


def test_server_time_of_a_storage_server_is_the_device_time() -> None:
    workload = {
        "kind": "storage",
        "blocks": {"kind": "fixed", "size": "1 KB"},
        "device_time": "100 us",
        "pattern": {"outstanding": 1, "calls": 600},
    }
    one_client = {"topology": {**BASE["topology"], "senders": 1}}  # type: ignore[dict-item]
    result = sojourn.run(BASE | one_client | {"workload": workload})
    answered = accounts.of_calls(result)
    assert set(answered["kind"]) == {"read", "write"}
    # With one outstanding request the device is never busy at an arrival.
    assert answered["server"].mean() == pytest.approx(100e-6, rel=0.15)
    assert answered["server"].std() == pytest.approx(100e-6, rel=0.2)
    assert set(accounts.of_calls(result, "read")["kind"]) == {"read"}


def test_calls_of_mixed_workloads_have_parts_and_unanswered_calls_are_excluded() -> None:
    poisson = {**BASE["workload"], "load": 0.1, "flows": 20}  # type: ignore[dict-item]
    parts = [RPC["workload"], poisson, {**RPC["workload"], "class": "other"}]  # type: ignore[dict-item]
    mixed = {"workload": {"kind": "mixed", "parts": parts}, "time_limit": "10 ms"}
    result = sojourn.run(RPC | mixed)
    answered = accounts.of_calls(result)
    assert set(answered["kind"]) == {"rpc", "other"}
    assert answered.height == result.flows["latency_s"].count()
    assert answered["server"].to_list() == pytest.approx([20e-6] * answered.height, abs=1e-12)
    unanswered = result.flows.filter(pl.col("class").str.ends_with("request")).height
    assert answered.height < unanswered


def test_a_server_without_service_time_takes_no_time() -> None:
    workload = {**RPC["workload"], "service": "0 s"}  # type: ignore[dict-item]
    assert set(accounts.of_calls(sojourn.run(RPC | {"workload": workload}))["server"]) == {0.0}


def test_means_of_calls_are_the_sums_of_means_of_their_legs(runs: list[sojourn.Run]) -> None:
    assert accounts.by_call(runs).is_empty(), "no calls"
    rpc_runs = sweep(over_seeds([({}, RPC)], 2))
    table = accounts.by_call(rpc_runs)

    def mean(leg: str, metric: str) -> float:
        return metrics.at(table, kind="rpc", leg=leg, metric=metric)

    latency = [run.result.flows["latency_s"].mean() for run in rpc_runs]
    assert mean("call", TOTAL) == pytest.approx(sum(latency) / 2)  # type: ignore[arg-type]
    assert sum(mean(leg, TOTAL) for leg in accounts.LEGS) == pytest.approx(mean("call", TOTAL))
    assert mean("server", TOTAL) == pytest.approx(20e-6)
    parts = sum(mean("call", part) for part in PARTS)
    assert parts == pytest.approx(mean("call", TOTAL) - mean("server", TOTAL))
    lines = tables.call_sentences(table, [])
    share = mean("request", TOTAL) / mean("call", TOTAL)
    assert lines[0].startswith(f"rpc calls: {share:.0%} the request, ")


def test_bars_of_a_call_extend_from_the_request_to_the_end_of_the_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("dctcp", "timely")
    rpc_runs = sweep(
        over_seeds([({"transport": kind}, RPC | {"transport": kind}) for kind in kinds], 1)
    )
    table = accounts.by_call(rpc_runs)
    pictures: list[Any] = []
    monkeypatch.setattr(plot, "save", lambda picture, _: pictures.append(picture))
    rpc_plot.draw(table, ["transport"], intervals.format_duration, tmp_path / "calls")
    (panel,) = pictures[0].axes
    assert panel.get_xlabel().endswith("(ms)")
    spans: dict[float, list[float]] = {}
    for bar in panel.patches:
        ends = bar.get_x(), bar.get_x() + bar.get_width()
        spans.setdefault(round(bar.get_y(), 6), []).extend(ends)
    legs = [(min(ends), max(ends)) for _, ends in sorted(spans.items())]
    texts = {text.get_text() for text in panel.texts}
    for kind, (request, server, response) in zip(kinds, (legs[:3], legs[3:]), strict=True):
        totals = table.filter(transport=kind, metric=TOTAL)
        latency = 1e3 * metrics.at(totals, leg="call")
        assert request[0] == 0
        assert (request[1], response[0]) == pytest.approx(server, abs=0.01 * latency)
        assert response[1] == pytest.approx(latency, rel=0.01)
        times = {row["leg"]: intervals.format_duration(row) for row in totals.to_dicts()}
        assert {f"{leg} {times[leg]}" for leg in accounts.LEGS} <= texts
    colours = {bar.get_facecolor() for bar in panel.patches}
    (legend,) = pictures[0].legends
    assert {bar.get_facecolor() for bar in legend.get_patches()} == colours


IDEALS = ("processor_sharing", "srpt", "max_min", "omniscient")


@pytest.fixture(scope="module")
def ideals() -> list[sojourn.Run]:
    """DCTCP and ideals on the same flows."""
    models = ["packet", *IDEALS, "alone"]
    return sweep(over_seeds([({"model": kind}, BASE | {"model": kind}) for kind in models], 1))


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
    result = sojourn.run(BASE | short)
    flows = accounts.divided(result)
    assert 0 < flows.height < result.flows.height
    assert flows["fct_s"].null_count() == 0
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BASE | short | {"account": False}))


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


def test_shares_of_places_add_up_to_one(runs: list[sojourn.Run]) -> None:
    shares = accounts.places(runs[:2], accounts.OTHERS)
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
    assert entries == [accounts.LABELS[part] for part in PARTS]


def test_results_without_breakdowns_are_an_error() -> None:
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BASE | {"account": False}))


def test_the_sentence_names_the_largest_part_of_the_excess(runs: list[sojourn.Run]) -> None:
    lines = tables.sentences(runs, ["transport"])
    assert len(lines) == 4, "two schemes, two sizes"
    mean = metrics.measure(runs, slowdown=metrics.slowdown("mean", metrics.BUCKETS[1]))
    dctcp = metrics.at(metrics.across_seeds(mean), transport="dctcp", metric="slowdown")
    assert lines[0].startswith(f"dctcp: flows ≤ 100 KB have a mean slowdown of {dctcp:#.3g}; ")
    assert "of the excess is cross-traffic queueing (" in lines[0]
    assert lines[0].endswith("% of it in switches of the forward path")


def test_the_breakdown_of_one_flow_adds_up_to_its_fct(runs: list[sojourn.Run]) -> None:
    result = runs[0].result
    rows = tables.flow_table(result, 7)
    total = sum(float(row[2].removesuffix(" s")) for row in rows.rows)
    fct = result.flows.filter(flow=7)["fct_s"][0]
    assert total == pytest.approx(fct, abs=1e-9 * len(rows.rows))


LOSSY = BASE | {
    "transport": "tcp",
    "queue": {"kind": "drop_tail", "capacity": "10 KB"},
    "account_flows": list(range(200)),
}


def test_a_chain_contains_the_reasons_of_waits_in_order_of_time() -> None:
    result = sojourn.run(LOSSY)
    flows = accounts.divided(result)
    flow = flows.filter(pl.col(accounts.TIME_OUTS) > 0, pl.col("rounds") > 1).row(0, named=True)
    (chain,) = of_runs([sojourn.Run({"seed": 1}, result)], flow["flow"])
    assert (chain.fct_s, chain.ideal_s) == pytest.approx((flow["fct_s"], flow["ideal_fct_s"]))
    sums = chain.pieces.select(pl.col(*PARTS).sum()).row(0, named=True)
    assert sums == pytest.approx({part: flow[part] for part in PARTS})
    rows = waterfall.table(chain, units.format_time).rows
    reasons = [row[1] for row in rows]
    assert reasons[0] == "handshake"
    assert reasons[-1] == "last packet"
    assert reasons.count("loss recovery after timeout") >= 1
    assert f"congestion window ({flow['rounds']})" in reasons


def test_a_table_omits_the_middle_of_a_long_chain_and_adjacent_equal_reasons_merge() -> None:
    flow = {"source": 0, "target": 3, "size": "4 MB"}
    workload = {"kind": "flows", "flows": [flow]}
    window = {"kind": "tcp", "window": {"max": 4}}
    result = sojourn.run(
        BASE
        | {"workload": workload, "account_flows": [0], "transport": window, "queue": LOSSY["queue"]}
    )
    (chain,) = of_runs([sojourn.Run({"seed": 1}, result)], 0)
    rows = waterfall.table(chain, units.format_time).rows
    assert len(rows) == waterfall.MAX_ROWS + 1
    assert rows[waterfall.MAX_ROWS // 2][1] == f"{chain.pieces.height - waterfall.MAX_ROWS} more"
    paced = sojourn.run(
        BASE | {"workload": workload, "account_flows": [0], "transport": "constant_rate"}
    )
    reasons = pieces(paced, 0)["reason"].to_list()
    assert all(first != second for first, second in itertools.pairwise(reasons))


def test_durations_are_printed_with_half_widths() -> None:
    row = {"value": 1.5e-3, "high": 1.75e-3}
    assert intervals.format_duration(row) == "1.5 ms ± 250 µs"
    assert intervals.format_duration(row | {"high": float("nan")}) == "1.5 ms"
    assert (
        intervals.format_duration({"value": 0.0, "high": 0.0})
        == intervals.format_duration({"value": None})
        == "-"
    )


def test_parts_below_one_per_cent_in_all_rows_are_omitted() -> None:
    def row(size: str, metric: str, value: float) -> dict[str, object]:
        return {"size": size, "metric": metric, "value": value, "low": 0.0, "high": 0.0}

    large = [row("large", TOTAL, 1000.0), row("large", accounts.PACE, 1000.0)]
    small = [row("small", TOTAL, 1.0), row("small", accounts.PACE, 0.5)]
    small += [row("small", accounts.TURN, 0.5), row("small", accounts.OTHERS, 0.009)]
    assert significant_metrics(pl.DataFrame([*large, *small])) == [
        *(TOTAL, accounts.PACE, accounts.TURN),
    ]


def test_a_comparison_with_breakdowns_is_printed_written_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    given = ["compare", "one.toml", "--vary", "transport=dctcp,timely", "--out", "out"]
    assert cli.invoke([*given, "--account", "--against", "timely"]) == 0
    printed = capsys.readouterr().out
    assert "FCT breakdown, size: all" in printed
    assert "difference from timely, size: all" in printed
    table = pl.read_csv("out/comparison.csv")
    assert {f"FCT: {name}" for name in PARTS} < set(table["metric"])
    assert set(pl.read_csv("out/differences.csv")["transport"]) == {"dctcp"}
    assert "cross-traffic queueing" in Path("out/comparison.svg").read_text(encoding="utf-8")
    assert cli.invoke(given) == 0
    assert "FCT breakdown" not in capsys.readouterr().out


def test_explain_writes_tables_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    assert cli.invoke(["explain", "one.toml"]) == 0
    assert "flows with the largest excess" in capsys.readouterr().out
    vary = ["explain", "one.toml", "--vary", "transport=dctcp,tcp", "--out", "both"]
    assert cli.invoke(vary) == 0
    assert "difference from dctcp, on the same flows" in capsys.readouterr().out
    names = {file.name for file in Path("both").iterdir()}
    assert names == {"account.csv", "account.svg", "account.png", "differences.csv"}
    assert cli.invoke(["explain", "one.toml", "--vary", "transport=dctcp", "--out", "alone"]) == 0
    assert "difference from" not in capsys.readouterr().out
    assert not Path("alone/differences.csv").exists()
    assert cli.invoke(["explain", "one.toml", "--flow", "3"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "window-limited RTTs" in printed
    assert "last packet" in printed
    assert "written to results/explain/one: chain.csv, chain.svg, chain.png" in printed
    several = ["explain", "one.toml", "--flow", "3", "--vary", "transport=dctcp,tcp"]
    assert cli.invoke([*several, "--seeds", "2", "--out", "each"]) == 0
    chains = pl.read_csv(Path("each") / "chain.csv")
    assert set(chains["chain"]) == {"dctcp: flow 3", "tcp: flow 3"}
    assert cli.invoke(["explain", "one.toml", "--flow", "999"]) == 2
    assert "--flow 999: no such flow" in capsys.readouterr().err


def test_explain_compares_ideals_and_transports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    vary = ["--vary", "model=packet,processor_sharing,alone", "--out", "out"]
    assert cli.invoke(["explain", "one.toml", *vary]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "100% of the excess is sharing (waits while the ideal serves other flows)" in printed
    assert "alone: flows ≤ 100 KB have a mean slowdown of 1.00" in printed
    assert cli.invoke(["compare", "one.toml", *vary, "--account"]) == 0
    assert "is sharing" in capsys.readouterr().out
    text = explain_example().replace('transport = "dctcp"', 'model = "srpt"')
    Path("ideal.toml").write_text(text, encoding="utf-8")
    assert cli.invoke(["explain", "ideal.toml"]) == 0
    assert "flows with the largest excess" in capsys.readouterr().out
    assert cli.invoke(["explain", "ideal.toml", "--flow", "3"]) == 2
    assert "--flow 3: an ideal" in capsys.readouterr().err


def test_explain_without_finished_flows_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network = explain_example().partition("[workload]")[0]
    flows = '[workload]\nkind = "permutation"\nsize = "10 MB"\n'
    Path("short.toml").write_text(f'time_limit = "1 ms"{network}{flows}', encoding="utf-8")
    assert cli.invoke(["explain", "short.toml"]) == 2
    expected = "sojourn: short.toml: no flow has finished: there is no completion time to divide\n"
    assert capsys.readouterr().err == expected
    compared = ["compare", "short.toml", "--vary", "transport=dctcp,timely", "--account"]
    assert cli.invoke(compared) == 0
    assert "FCT breakdown" not in capsys.readouterr().out
    # The same holds before any flow has started.
    Path("none.toml").write_text(f'time_limit = "1 ps"{explain_example()}', encoding="utf-8")
    assert cli.invoke(["compare", "none.toml", "--vary", "transport=dctcp,tcp"]) == 0


def test_explain_prints_and_draws_parts_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network = explain_example().partition("[workload]")[0]
    calls = """[workload]
kind = "rpc"
request = { kind = "fixed", size = "64 KB" }
response = { kind = "fixed", size = "1 KB" }
service = "2 ms"
pattern = { outstanding = 1, calls = 20 }
"""
    Path("calls.toml").write_text(network + calls, encoding="utf-8")
    assert cli.invoke(["explain", "calls.toml", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "calls: rpc" in printed
    assert "% the server" in printed
    assert "calls.csv, calls.svg, calls.png" in printed
    assert "server 2 ms" in Path("out/calls.svg").read_text(encoding="utf-8")
    assert Path("out/calls.png").exists()
    server = pl.read_csv("out/calls.csv").filter(leg="server", metric=TOTAL)
    assert server["value"].to_list() == pytest.approx([2e-3])


def explain_example() -> str:
    return """
transport = "dctcp"
[topology]
kind = "dumbbell"
senders = 2
receivers = 2
rate = "1 Gbps"
delay = "1 us"
[workload]
kind = "poisson"
load = 0.5
flows = 50
sizes = { kind = "uniform", min = "1 B", max = "200 KB" }
"""


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
    assert flows.height == 400
    waits, fcts = flows[accounts.CONNECTION].to_numpy(), flows["fct_s"].to_numpy()
    assert waits.sum() > 0.05 * fcts.sum()
    error = flows.select(pl.sum_horizontal(*PARTS) - pl.col("fct_s")).to_series()
    assert (error.abs() < 1e-12).all()
    least = excess.select(pl.min_horizontal(*PARTS)).to_series()
    assert (least > -1e-12).all()
    assert pieces(result, 20)["lasts_s"].sum() == pytest.approx(flows.row(20, named=True)["fct_s"])


def test_explain_begins_with_its_conclusion_and_names_candidates_for_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    vary = ["--vary", "transport=dctcp,tcp"]
    assert cli.invoke(["explain", "one.toml", *vary, "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0].startswith("dctcp: flows ≤ 100 KB have a mean slowdown of ")
    assert lines.count("mean FCT by cause") == 1
    assert "cross-traffic queueing: queueing in ports behind packets of other flows" in lines
    title = "flows with the largest excess over the ideal FCT (seed 1)"
    start = lines.index(title)
    assert lines[start + 2].split() == [
        "transport",
        "flow",
        "class",
        "size",
        "FCT",
        "slowdown",
        "main",
        "cause",
    ]
    rows = [line.split() for line in lines[start + 4 : start + 14]]
    assert [row[0] for row in rows] == ["dctcp"] * 5 + ["tcp"] * 5
    base = sojourn.read("one.toml") | {"account": True}
    flows = accounts.divided(sojourn.run(base | {"seed": 1}))
    slowest = flows.sort(pl.col("fct_s") - pl.col("ideal_fct_s"), descending=True).head(5)
    assert [int(row[1]) for row in rows[:5]] == slowest["flow"].to_list()
    assert cli.invoke(["explain", "one.toml", *vary, "--flow", rows[0][1]]) == 0
    capsys.readouterr()
    assert cli.invoke(["explain", "one.toml", *vary, "--tables"]) == 0
    assert "size: ≤ 100 KB" in capsys.readouterr().out
