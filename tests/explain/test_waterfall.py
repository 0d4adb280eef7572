"""Waterfalls: the intervals of causal chains, as tables and bars."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn
from conftest import BREAKDOWN
from sojourn import accounts
from sojourn.analysis.breakdown import PARTS
from sojourn.analysis.chains import Chain, of_runs, pieces
from sojourn.base import units
from sojourn.explain import waterfall

LOSSY = BREAKDOWN | {
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
    assert reasons.count("loss recovery after timer") >= 1
    assert f"congestion window, RTT {flow['rounds']}" in reasons


def test_a_table_omits_the_middle_of_a_long_chain_and_adjacent_equal_reasons_merge() -> None:
    flow = {"source": 0, "target": 3, "size": "4 MB"}
    workload = {"kind": "flows", "flows": [flow]}
    window = {"kind": "tcp", "window": {"max": 4}}
    result = sojourn.run(
        BREAKDOWN
        | {"workload": workload, "account_flows": [0], "transport": window, "queue": LOSSY["queue"]}
    )
    (chain,) = of_runs([sojourn.Run({"seed": 1}, result)], 0)
    rows = waterfall.table(chain, units.format_time).rows
    assert len(rows) == waterfall.MAX_ROWS + 1
    begin, number, duration, parts = rows[waterfall.MAX_ROWS // 2]
    omitted = chain.pieces.height - waterfall.MAX_ROWS
    assert (begin, number) == ("…", f"{omitted:,} more")
    assert duration.endswith(" ms")
    assert parts.startswith("congestion window ")
    begins = [row[0] for row in rows]
    assert len(set(begins)) == len(begins), "begins are distinct"
    paced = sojourn.run(
        BREAKDOWN | {"workload": workload, "account_flows": [0], "transport": "constant_rate"}
    )
    reasons = pieces(paced, 0)["reason"].to_list()
    assert all(first != second for first, second in itertools.pairwise(reasons))


def test_a_bar_of_a_long_chain_stands_for_several_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[pl.DataFrame] = []

    def keep(axes: Any, places: Any, begins: Any, widths: pl.DataFrame) -> None:
        drawn.append(widths.with_columns(begin=begins))

    monkeypatch.setattr(waterfall, "draw_bars", keep)
    intervals_s = [1e-3] * 150
    table = pl.DataFrame({part: [0.0] * 150 for part in PARTS}).with_columns(
        reason=pl.lit("window"), lasts_s=pl.Series(intervals_s), flight=pl.Series(intervals_s)
    )
    table = table.with_columns(begins_s=pl.col("lasts_s").cum_sum() - pl.col("lasts_s"))
    long = Chain("long", table, 0.1)
    waterfall.draw([long, Chain("short", table.head(60), 0.1)], tmp_path / "chain", ["svg"])
    merged, single = drawn
    assert (merged.height, single.height) == (50, 60)
    assert merged["begin"].to_list() == pytest.approx(np.arange(0, 150, 3.0))
    assert merged["flight"].to_list() == pytest.approx([3.0] * 50)
    text = (tmp_path / "chain.svg").read_text()
    assert text.count("a bar: 3 intervals") == 1
