"""Accounts in words, and what `sojourn explain` shows of them."""

import itertools
from pathlib import Path

import polars as pl
import pytest

import sojourn
from sojourn import (
    ScenarioError,
    accounts,
    cli,
    explain,
    metrics,
    over_seeds,
    screen,
    sweep,
    waterfall,
)
from sojourn.accounts import PARTS, TOTAL

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
    assert {accounts.part_of(column) for column in columns} == set(PARTS)
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


def test_shares_of_places_are_all_of_a_part(runs: list[sojourn.Run]) -> None:
    found = accounts.places(runs[:2], accounts.OTHERS)
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert all("queue_others" in column for column in found)


def test_results_without_accounts_are_refused() -> None:
    with pytest.raises(ScenarioError, match="account: must be true"):
        accounts.divided(sojourn.run(BASE | {"account": False}))


def test_the_sentence_names_what_costs_most(runs: list[sojourn.Run]) -> None:
    said = explain.sentences(runs, ["transport"])
    assert len(said) == 4, "two schemes, two sizes"
    assert said[0].startswith("dctcp: flows ≤ 100 KB take ")
    assert "of the excess is queues: others (in ports that send packets of other flows)" in said[0]


def test_one_flows_account_has_every_part_of_its_time(runs: list[sojourn.Run]) -> None:
    result = runs[0].result
    rows = explain.of_flow(result, 7)
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
    (chain,) = waterfall.of_runs([sojourn.Run({"seed": 1}, result)], repaired["flow"])
    assert (chain.fct_s, chain.ideal_s) == pytest.approx(
        (repaired["fct_s"], repaired["ideal_fct_s"])
    )
    sums = chain.pieces.select(pl.col(*PARTS).sum()).row(0, named=True)
    assert sums == pytest.approx({part: repaired[part] for part in PARTS})
    rows = waterfall.table(chain, screen.duration).rows
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
    (chain,) = waterfall.of_runs([sojourn.Run({"seed": 1}, result)], 0)
    rows = waterfall.table(chain, screen.duration).rows
    assert len(rows) == waterfall.MOST_ROWS + 1
    assert rows[waterfall.MOST_ROWS // 2][1] == f"{chain.pieces.height - waterfall.MOST_ROWS} more"
    paced = sojourn.run(
        BASE | {"workload": workload, "account_flows": [0], "transport": "constant_rate"}
    )
    reasons = waterfall.pieces(paced, 0)["reason"].to_list()
    assert all(one != other for one, other in itertools.pairwise(reasons))


def test_times_are_told_with_their_reach() -> None:
    row = {"value": 1.5e-3, "high": 1.75e-3}
    assert screen.spent(row) == "1.5 ms ± 250 µs"
    assert screen.spent(row | {"high": float("nan")}) == "1.5 ms"
    assert screen.spent({"value": 0.0, "high": 0.0}) == screen.spent({"value": None}) == "-"


def test_explain_writes_tables_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(explain_example(), encoding="utf-8")
    assert cli.invoke(["explain", "one.toml"]) == 0
    assert "flows with the largest excess" in capsys.readouterr().out
    vary = ["explain", "one.toml", "--vary", "transport=dctcp,tcp", "--out", "both"]
    assert cli.invoke(vary) == 0
    assert "more than under dctcp, on the same flows" in capsys.readouterr().out
    names = {file.name for file in Path("both").iterdir()}
    assert names == {"account.csv", "account.svg", "account.png", "differences.csv"}
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
