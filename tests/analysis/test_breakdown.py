"""Accounts in words, and what `sojourn explain` shows of them."""

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
    """DCTCP and TIMELY on the same flows, two seeds."""
    labelled = [({"transport": kind}, BASE | {"transport": kind}) for kind in ("dctcp", "timely")]
    return sweep(over_seeds(labelled, 2))


def test_every_column_of_accounts_belongs_to_one_part(runs: list[sojourn.Run]) -> None:
    columns = accounts.columns_of(runs[0].result.account)
    found = {accounts.part_of(column) for column in columns}
    assert found == set(PARTS) - {accounts.SHARED}, "what only ideals have"
    assert accounts.split("recovery_timeout_sender_ps") == ("recovery_timeout", "sender")
    assert accounts.part_of("window_queue_others_there_ps") == accounts.OTHERS
    assert accounts.part_of("window_receiver_ps") == accounts.ROUND_TRIPS
    with pytest.raises(ValueError, match="no part"):
        accounts.part_of("fct_ps")


def test_parts_add_up_to_completion_times(runs: list[sojourn.Run]) -> None:
    for run in runs:
        flows = accounts.divided(run.result)
        apart = flows.select(pl.sum_horizontal(*PARTS) - pl.col("fct_s")).to_series()
        assert float(apart.abs().max()) < 1e-12  # type: ignore[arg-type]
        beyond = accounts.divided(run.result, excess=True)
        apart = beyond.select(
            pl.sum_horizontal(*PARTS) - pl.col("fct_s") + pl.col("ideal_fct_s")
        ).to_series()
        assert float(apart.abs().max()) < 1e-12  # type: ignore[arg-type]
        least = beyond.select(pl.min_horizontal(*PARTS)).to_series()
        assert float(least.min()) > -1e-12  # type: ignore[arg-type]
    table = accounts.by_size(runs)
    for part in table.partition_by("transport", "size"):
        values = dict(zip(part["metric"], part["value"], strict=True))
        assert sum(values[name] for name in PARTS) == pytest.approx(values[TOTAL])


def test_what_sending_takes_anyway_is_no_excess_wherever_it_was_spent() -> None:
    flow = {"source": 0, "target": 3, "size": "1 MB"}
    lone = BASE | {"workload": {"kind": "flows", "flows": [flow]}}

    def excess(transport: object) -> dict[str, float]:
        flows = accounts.divided(sojourn.run(lone | {"transport": transport}), excess=True)
        (parts,) = flows.select("fct_s", "ideal_fct_s", *PARTS).to_dicts()
        costs = sum(parts[name] for name in PARTS)
        assert costs == pytest.approx(parts["fct_s"] - parts["ideal_fct_s"], abs=1e-12)
        return {name: parts[name] for name in PARTS if abs(parts[name]) > 1e-12}

    # At line rate nothing is left of what waited for the port; at half of it, half of the time.
    assert excess("constant_rate") == {}
    slow = excess({"kind": "constant_rate", "rate": "500 Mbps"})
    assert slow == {accounts.PACE: pytest.approx(1e6 * 8 * 1500 / 1460 / 1e9, rel=0.02)}
    # Windows that fill the path cost nothing, and smaller ones the round trips alone.
    assert set(excess("tcp")) == {accounts.HANDSHAKE}
    small = excess({"kind": "tcp", "window": {"max": 1}})
    assert set(small) == {accounts.HANDSHAKE, accounts.ROUND_TRIPS}


def test_the_difference_of_two_schemes_divides_by_part(runs: list[sojourn.Run]) -> None:
    table = accounts.differences(runs, "transport")
    assert table["transport"].unique().to_list() == ["timely"]
    means = accounts.by_size(runs)

    def mean(scheme: str, part: str) -> float:
        return metrics.at(means, transport=scheme, size="all", metric=part)

    for name in (TOTAL, accounts.PACE, accounts.OTHERS):
        found = metrics.at(table, size="all", metric=name)
        assert found == pytest.approx(mean("timely", name) - mean("dctcp", name), abs=1e-12)
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


def test_flows_that_are_not_the_same_are_held_to_each_other_by_their_means() -> None:
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


def test_a_comparison_divides_times_and_differences_by_part(runs: list[sojourn.Run]) -> None:
    varied = {"transport": ["dctcp", "timely"]}
    base = {name: value for name, value in BASE.items() if name != "account"}
    table, made = comparison.compare(base, varied, seeds=2, account=True)
    usual, parts = comparison.divided(table)
    assert usual.equals(comparison.compare(base, varied, seeds=2)[0])
    means = accounts.by_size(runs)
    assert parts.select(means.columns).equals(means)
    paired = pairs.ratios(made, by="transport")
    differences = accounts.differences(made, "transport")
    said = paired_tables.sentences(paired, "transport", differences)
    assert len(said) == 1
    shares = {name: metrics.at(differences, size="100 KB to 10 MB", metric=name) for name in PARTS}
    most = max(shares, key=lambda name: shares[name])
    whole = metrics.at(differences, size="100 KB to 10 MB", metric=TOTAL)
    assert whole > 0
    assert f"and {100 * shares[most] / whole:.0f} % of what they lose is {most}" in said[0]


def of_class(name: str, source: int, size: str) -> dict[str, object]:
    return {"source": source, "target": 3 + source, "size": size, "class": name}


TWO_CLASSES = BASE | {
    "workload": {
        "kind": "flows",
        "flows": [
            *(of_class("backup", source, "1 MB") for source in range(3)),
            *(of_class("query", source, "10 KB") for source in range(3)),
        ],
    }
}


@pytest.fixture(scope="module")
def classes() -> list[sojourn.Run]:
    """DCTCP and TIMELY on the same flows of two classes, which sizes tell apart too."""
    kinds = ("dctcp", "timely")
    labelled = [({"transport": kind}, TWO_CLASSES | {"transport": kind}) for kind in kinds]
    return sweep(over_seeds(labelled, 1))


def rows_of(table: pl.DataFrame, **labels: str) -> pl.DataFrame:
    return table.filter(**labels).drop("size", "class")


def test_what_is_told_of_sizes_is_told_of_classes(
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
            of_one = rows_of(table, **{"class": name})
            assert of_one.height > len(PARTS)
            assert of_one.equals(rows_of(table, size=size))
    for run in classes:
        flows = accounts.divided(run.result).filter(pl.col("class") == "query")
        given = {"transport": run.labels["transport"], "class": "query", "metric": accounts.OTHERS}
        assert metrics.at(accounts.by_size(classes), **given) == pytest.approx(
            flows[accounts.OTHERS].mean()
        )
    assert "class" not in by_size.columns, "no bucket is of a class"
    assert "class" not in accounts.by_size(runs).columns, "of one class"
    assert "class" not in accounts.differences(runs, "transport").columns


def test_the_words_of_classes_are_those_of_sizes(classes: list[sojourn.Run]) -> None:
    said = tables.sentences(classes, ["transport"])
    assert len(said) == 8, "two schemes, two sizes, two classes"
    assert said[2] == said[1].replace("100 KB to 10 MB", "of class backup")
    assert said[3] == said[0].replace("≤ 100 KB", "of class query")
    # What a comparison says of all flows is not changed by classes.
    paired = pairs.ratios(classes, by="transport", buckets=[metrics.ALL])
    paired = paired.with_columns(low=2.0, high=3.0)
    with_classes, without = (
        paired_tables.sentences(
            paired, "transport", accounts.differences(classes, "transport", **of)
        )
        for of in ({}, {"buckets": metrics.BUCKETS})
    )
    assert with_classes == without
    assert "% of what they lose is pace" in without[0]


def test_a_comparison_with_accounts_tells_classes_apart(
    classes: list[sojourn.Run], tmp_path: Path
) -> None:
    table, _ = comparison.compare(TWO_CLASSES, {"transport": ["dctcp", "timely"]}, account=True)
    _, parts = comparison.divided(table)
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


def told(parts: dict[str, float], **ratio: float) -> str:
    """Return what a comparison says of a difference that has these parts."""
    labels = {"transport": "swift", "size": "≤ 100 KB"}
    rows = [{**labels, "metric": name, "value": value} for name, value in parts.items()]
    row = {**labels, "class": "all", "value": 0.7, "low": 0.6, "high": 0.8} | ratio
    return paired_tables.Parts(["transport"], pl.DataFrame(rows)).told(row)


def test_the_sentence_of_a_difference_names_the_part_that_most_of_it_is() -> None:
    saved = {TOTAL: -10.0, accounts.OTHERS: -8.0, accounts.PACE: -2.0}
    assert told(saved) == ", and 80 % of what they save is queues: others"
    lost = {TOTAL: 10.0, accounts.OTHERS: -2.0, accounts.PACE: 12.0}
    expected = ", and 120 % of what they lose is pace (less 20 % for queues: others)"
    assert told(lost) == expected
    assert not told(saved, low=0.6, high=1.1), "what is not told apart has no parts"


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
    apart = answered.select(pl.sum_horizontal(*legs, "server") - pl.col("latency_s")).to_series()
    assert float(apart.abs().max()) < 1e-12  # type: ignore[arg-type]
    assert answered["server"].to_list() == pytest.approx([20e-6] * 60, abs=1e-12)
    requests = result.flows.join(answered, left_on="flow", right_on="request", how="semi")
    assert answered["request_s"].equals(requests["fct_s"], check_names=False)


def test_the_time_of_a_server_with_a_device_is_that_of_the_device() -> None:
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
    # A client that waits for each answer never finds the device busy.
    assert answered["server"].mean() == pytest.approx(100e-6, rel=0.15)
    assert answered["server"].std() == pytest.approx(100e-6, rel=0.2)
    assert set(accounts.of_calls(result, "read")["kind"]) == {"read"}


def test_calls_among_others_are_divided_and_unanswered_ones_left_out() -> None:
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


def test_a_server_that_answers_at_once_takes_no_time() -> None:
    workload = {**RPC["workload"], "service": "0 s"}  # type: ignore[dict-item]
    assert set(accounts.of_calls(sojourn.run(RPC | {"workload": workload}))["server"]) == {0.0}


def test_means_of_calls_are_those_of_their_legs(runs: list[sojourn.Run]) -> None:
    assert accounts.by_call(runs).is_empty(), "no calls"
    made = sweep(over_seeds([({}, RPC)], 2))
    table = accounts.by_call(made)

    def mean(leg: str, metric: str) -> float:
        return metrics.at(table, kind="rpc", leg=leg, metric=metric)

    latency = [run.result.flows["latency_s"].mean() for run in made]
    assert mean("call", TOTAL) == pytest.approx(sum(latency) / 2)  # type: ignore[arg-type]
    assert sum(mean(leg, TOTAL) for leg in accounts.LEGS) == pytest.approx(mean("call", TOTAL))
    assert mean("server", TOTAL) == pytest.approx(20e-6)
    parts = sum(mean("call", part) for part in PARTS)
    assert parts == pytest.approx(mean("call", TOTAL) - mean("server", TOTAL))
    said = tables.calls_told(table, [])
    share = mean("request", TOTAL) / mean("call", TOTAL)
    assert said[0].startswith(f"rpc calls: {share:.0%} the request, ")


def test_a_picture_of_calls_goes_from_the_request_to_the_end_of_the_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("dctcp", "timely")
    made = sweep(
        over_seeds([({"transport": kind}, RPC | {"transport": kind}) for kind in kinds], 1)
    )
    table = accounts.by_call(made)
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
    said = {text.get_text() for text in panel.texts}
    for kind, (request, server, response) in zip(kinds, (legs[:3], legs[3:]), strict=True):
        of = table.filter(transport=kind, metric=TOTAL)
        latency = 1e3 * metrics.at(of, leg="call")
        assert request[0] == 0
        assert (request[1], response[0]) == pytest.approx(server, abs=0.01 * latency)
        assert response[1] == pytest.approx(latency, rel=0.01)
        takes = {row["leg"]: intervals.format_duration(row) for row in of.to_dicts()}
        assert {f"{leg} {takes[leg]}" for leg in accounts.LEGS} <= said
    colours = {bar.get_facecolor() for bar in panel.patches}
    (legend,) = pictures[0].legends
    assert {bar.get_facecolor() for bar in legend.get_patches()} == colours


IDEALS = ("processor_sharing", "srpt", "max_min", "omniscient")


@pytest.fixture(scope="module")
def ideals() -> list[sojourn.Run]:
    """DCTCP and ideals on the same flows."""
    models = ["packet", *IDEALS, "alone"]
    return sweep(over_seeds([({"model": kind}, BASE | {"model": kind}) for kind in models], 1))


def test_an_ideals_time_is_that_alone_and_what_others_take(ideals: list[sojourn.Run]) -> None:
    for run in ideals[1:]:
        flows = accounts.divided(run.result)
        assert flows[accounts.FLIGHT].equals(flows["ideal_fct_s"], check_names=False)
        shared = flows["fct_s"] - flows["ideal_fct_s"]
        assert flows[accounts.SHARED].to_list() == shared.to_list()
        assert (shared.max() > 0) == (run.labels["model"] != "alone")  # type: ignore[operator]
        rest = flows.select(pl.sum_horizontal(set(PARTS) - {accounts.FLIGHT, accounts.SHARED}))
        assert rest.to_series().abs().max() == 0
        beyond = accounts.divided(run.result, excess=True)
        apart = beyond.select(pl.sum_horizontal(*PARTS) - pl.col(accounts.SHARED)).to_series()
        assert apart.abs().max() == 0
    assert accounts.divided(ideals[0].result)[accounts.SHARED].max() == 0
    shortest = min(ideals[1:-1], key=lambda run: accounts.divided(run.result)["shared"].sum())
    assert shortest.labels["model"] in {"srpt", "omniscient"}


def test_flows_that_an_ideal_has_not_finished_are_left_out() -> None:
    short = {"model": "processor_sharing", "time_limit": "20 ms"}
    result = sojourn.run(BASE | short)
    flows = accounts.divided(result)
    assert 0 < flows.height < result.flows.height
    assert flows["fct_s"].null_count() == 0
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BASE | short | {"account": False}))


def test_a_transport_beside_an_ideal_differs_in_what_is_beyond_the_time_alone(
    ideals: list[sojourn.Run],
) -> None:
    table = accounts.differences(ideals, "model", "processor_sharing")
    beyond = accounts.divided(ideals[0].result, excess=True)
    ideal = accounts.divided(ideals[1].result)

    def apart(model: str, part: str) -> float:
        return metrics.at(table, model=model, size="all", metric=part)

    for part in (accounts.OTHERS, accounts.OWN, accounts.ROUND_TRIPS):
        assert apart("packet", part) == pytest.approx(beyond[part].mean())
    shared: float = ideal[accounts.SHARED].mean()  # type: ignore[assignment]
    assert apart("packet", accounts.SHARED) == pytest.approx(-shared)
    parts = sum(apart("packet", part) for part in PARTS)
    assert parts == pytest.approx(apart("packet", TOTAL))
    assert apart("srpt", accounts.SHARED) == pytest.approx(apart("srpt", TOTAL))


def test_shares_of_places_are_all_of_a_part(runs: list[sojourn.Run]) -> None:
    found = accounts.places(runs[:2], accounts.OTHERS)
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert all("queue_others" in column for column in found)


def test_stacked_bars_are_as_high_as_the_parts_together_and_hang_if_less_than_nothing() -> None:
    heights = pl.DataFrame({part: [0.0, 0.0] for part in PARTS}).with_columns(
        pl.Series(accounts.PACE, [2.0, 1.0]), pl.Series(accounts.OWN, [1.0, -3.0])
    )
    with plot.canvas() as (_, axes):
        accounts.stack(axes, [0, 1], heights)
        ends = [(bar.get_y(), bar.get_y() + bar.get_height(), bar.get_x()) for bar in axes.patches]
        named = axes.get_legend_handles_labels()[1]
    for left, bottom, top in ((-0.4, 0, 3), (0.6, -3, 1)):
        spans = [(min(one, two), max(one, two)) for one, two, x in ends if x == left]
        assert min(low for low, _ in spans) == bottom
        assert max(high for _, high in spans) == top
    assert named == list(PARTS)


def test_results_without_accounts_are_refused() -> None:
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BASE | {"account": False}))


def test_the_sentence_names_what_costs_most(runs: list[sojourn.Run]) -> None:
    said = tables.sentences(runs, ["transport"])
    assert len(said) == 4, "two schemes, two sizes"
    assert said[0].startswith("dctcp: flows ≤ 100 KB take ")
    most = "queues: others (in ports that send packets of other flows)"
    assert f"of the excess is {most}, " in said[0]
    assert said[0].endswith("% of it in switches on the way there")


def test_one_flows_account_has_every_part_of_its_time(runs: list[sojourn.Run]) -> None:
    result = runs[0].result
    rows = tables.of_flow(result, 7)
    took = sum(float(row[2].removesuffix(" s")) for row in rows.rows)
    fct = result.flows.filter(flow=7)["fct_s"][0]
    assert took == pytest.approx(fct, abs=1e-9 * len(rows.rows))


LOSSY = BASE | {
    "transport": "tcp",
    "queue": {"kind": "drop_tail", "capacity": "10 KB"},
    "account_flows": list(range(200)),
}


def test_a_chain_says_one_after_the_other_what_held_the_flow_back() -> None:
    result = sojourn.run(LOSSY)
    flows = accounts.divided(result)
    repaired = flows.filter(pl.col(accounts.TIME_OUTS) > 0, pl.col("rounds") > 1).row(0, named=True)
    (chain,) = of_runs([sojourn.Run({"seed": 1}, result)], repaired["flow"])
    assert (chain.fct_s, chain.ideal_s) == pytest.approx(
        (repaired["fct_s"], repaired["ideal_fct_s"])
    )
    sums = chain.pieces.select(pl.col(*PARTS).sum()).row(0, named=True)
    assert sums == pytest.approx({part: repaired[part] for part in PARTS})
    rows = waterfall.table(chain, units.format_time).rows
    did = [row[1] for row in rows]
    assert did[0] == "opens the flow"
    assert did[-1] == "the last packet"
    assert did.count("lost: a time-out tells") >= 1
    assert f"waits for the window ({repaired['rounds']})" in did


def test_a_long_chain_is_shown_by_its_ends_and_neighbours_of_one_reason_are_one_piece() -> None:
    flow = {"source": 0, "target": 3, "size": "4 MB"}
    workload = {"kind": "flows", "flows": [flow]}
    window = {"kind": "tcp", "window": {"max": 4}}
    result = sojourn.run(
        BASE
        | {"workload": workload, "account_flows": [0], "transport": window, "queue": LOSSY["queue"]}
    )
    (chain,) = of_runs([sojourn.Run({"seed": 1}, result)], 0)
    rows = waterfall.table(chain, units.format_time).rows
    assert len(rows) == waterfall.MOST_ROWS + 1
    assert rows[waterfall.MOST_ROWS // 2][1] == f"{chain.pieces.height - waterfall.MOST_ROWS} more"
    paced = sojourn.run(
        BASE | {"workload": workload, "account_flows": [0], "transport": "constant_rate"}
    )
    reasons = pieces(paced, 0)["reason"].to_list()
    assert all(one != other for one, other in itertools.pairwise(reasons))


def test_times_are_told_with_their_reach() -> None:
    row = {"value": 1.5e-3, "high": 1.75e-3}
    assert intervals.format_duration(row) == "1.5 ms ± 250 µs"
    assert intervals.format_duration(row | {"high": float("nan")}) == "1.5 ms"
    assert (
        intervals.format_duration({"value": 0.0, "high": 0.0})
        == intervals.format_duration({"value": None})
        == "-"
    )


def test_parts_are_left_out_that_are_nowhere_a_hundredth_of_the_time() -> None:
    def row(size: str, metric: str, value: float) -> dict[str, object]:
        return {"size": size, "metric": metric, "value": value, "low": 0.0, "high": 0.0}

    large = [row("large", TOTAL, 1000.0), row("large", accounts.PACE, 1000.0)]
    small = [row("small", TOTAL, 1.0), row("small", accounts.PACE, 0.5)]
    small += [row("small", accounts.TURN, 0.5), row("small", accounts.OTHERS, 0.009)]
    assert significant_metrics(pl.DataFrame([*large, *small])) == [
        *(TOTAL, accounts.PACE, accounts.TURN),
    ]


def test_a_comparison_with_accounts_is_printed_written_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    given = ["compare", "one.toml", "--vary", "transport=dctcp,timely", "--out", "out"]
    assert cli.invoke([*given, "--account", "--against", "timely"]) == 0
    said = capsys.readouterr().out
    assert "FCT breakdown, size: all" in said
    assert "difference from timely, size: all" in said
    table = pl.read_csv("out/comparison.csv")
    assert {f"FCT: {name}" for name in PARTS} < set(table["metric"])
    assert set(pl.read_csv("out/differences.csv")["transport"]) == {"dctcp"}
    assert "queues: others" in Path("out/comparison.svg").read_text(encoding="utf-8")
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
    said = " ".join(capsys.readouterr().out.split())
    assert "round trips of the window" in said
    assert "the last packet" in said
    assert "written to results/explain/one: chain.csv, chain.svg, chain.png" in said
    several = ["explain", "one.toml", "--flow", "3", "--vary", "transport=dctcp,tcp"]
    assert cli.invoke([*several, "--seeds", "2", "--out", "each"]) == 0
    chains = pl.read_csv(Path("each") / "chain.csv")
    assert set(chains["chain"]) == {"dctcp: flow 3", "tcp: flow 3"}
    assert cli.invoke(["explain", "one.toml", "--flow", "999"]) == 2
    assert "--flow 999: is not among the flows" in capsys.readouterr().err


def test_explain_shows_ideals_beside_transports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    vary = ["--vary", "model=packet,processor_sharing,alone", "--out", "out"]
    assert cli.invoke(["explain", "one.toml", *vary]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "100% of the excess is shared (for others that the ideal serves meanwhile)" in said
    assert "alone: flows ≤ 100 KB take 1.00 times what they would alone" in said
    assert cli.invoke(["compare", "one.toml", *vary, "--account"]) == 0
    assert "is shared" in capsys.readouterr().out
    text = explain_example().replace('transport = "dctcp"', 'model = "srpt"')
    Path("ideal.toml").write_text(text, encoding="utf-8")
    assert cli.invoke(["explain", "ideal.toml"]) == 0
    assert "flows with the largest excess" in capsys.readouterr().out
    assert cli.invoke(["explain", "ideal.toml", "--flow", "3"]) == 2
    assert "--flow 3: an ideal" in capsys.readouterr().err


def test_without_a_flow_that_has_finished_nothing_is_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network = explain_example().partition("[workload]")[0]
    flows = '[workload]\nkind = "permutation"\nsize = "10 MB"\n'
    Path("short.toml").write_text(f'time_limit = "1 ms"{network}{flows}', encoding="utf-8")
    assert cli.invoke(["explain", "short.toml"]) == 2
    expected = "sojourn: short.toml: no flow has finished: there is no time to divide\n"
    assert capsys.readouterr().err == expected
    compared = ["compare", "short.toml", "--vary", "transport=dctcp,timely", "--account"]
    assert cli.invoke(compared) == 0
    assert "FCT breakdown" not in capsys.readouterr().out
    # Nor if none has even started.
    Path("none.toml").write_text(f'time_limit = "1 ps"{explain_example()}', encoding="utf-8")
    assert cli.invoke(["compare", "none.toml", "--vary", "transport=dctcp,tcp"]) == 0


def test_explain_divides_calls(
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
    said = capsys.readouterr().out
    assert "calls: rpc" in said
    assert "% the server" in said
    assert "calls.csv, calls.svg, calls.png" in said
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
