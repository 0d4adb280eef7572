"""Figure B1: FCT by size, and flows in progress: TCP, XCP, RCP and processor sharing."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    between,
    every,
    override,
    plot,
    theory,
)

from .paper import (
    ACTIVE,
    BY_SIZE,
    FORMULA,
    MANY_FLOWS_SCALES,
    RCP_AS_XCP,
    SHARING,
    SRPT,
    TCP,
    XCP,
    Setting,
    all_schemes,
    along_size,
    first_seed,
    mean_of,
    over_time,
    paper,
    ratios,
)

SETTING = Setting(theory.Link(2.4e9, 0.1), 0.9, theory.Pareto(30, 1.4))

FROM_ONE = "TCP, initial window 1"
"""TCP with the initial window of the paper's formula of slow start; judged, not drawn."""

figure = Figure(
    paper,
    id="b1",
    title="Completion time by size, and flows in progress",
    source="Figure 1",
    scales=MANY_FLOWS_SCALES,
    deviations=(
        "With an initial window of 2, the default of ns-2, slow start alone makes flows of 10 "
        "packets only 2.3 times as slow as processor sharing. The paper's formula has a window of "
        "1; TCP is also run with a window of 1, and judged below.",
        "The source states an order of magnitude without a size; here it is the median over bins "
        "of size up to 2000 packets. The bound of 3 times is ours.",
    ),
    panels=(1, 2),
    size=(11, 4.4),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = SETTING.at(scale)
    schemes = all_schemes(setting.link, "selective_repeat", scale)
    schemes[FROM_ONE] = override(schemes[TCP], {"transport.window.initial": 1})
    yield from setting.runs(scale, schemes)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    active = over_time(runs).filter(metric=ACTIVE)
    return pl.concat([along_size(SETTING, runs), active], how="diagonal")


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    table = table.filter(pl.col("scheme") != FROM_ONE)
    by_size, forms = table.filter(metric=BY_SIZE), table.filter(metric=FORMULA)
    plot.along_sizes(axes[0], by_size, curves=forms, limits=(1, 2e4))
    active = first_seed(table, ACTIVE).filter(~pl.col("scheme").is_in([SRPT, RCP_AS_XCP]))
    plot.series(axes[1], active.drop("high"), unit="", time_unit="s", label=ACTIVE)
    axes[1].set_ylim(bottom=0)


@figure.claim(
    "under processor sharing flows are an order of magnitude faster than under TCP (10 times, "
    "within a factor of 3), up to 2000 packets"
)
def order_of_magnitude(table: pl.DataFrame) -> Verdict:
    median: Any = ratios(table, TCP, SHARING, up_to=2000)["ratio"].median()
    value = float("nan") if median is None else float(median)
    return between(value, 10 / 3, 30, "the median over bins of TCP over processor sharing")


def judge_three_times(table: pl.DataFrame, above: float = 0, scheme: str = TCP) -> Verdict:
    """Judge that flows of more than `above` packets are 3 times as fast under sharing."""
    slower = ratios(table, scheme, SHARING, up_to=2000, above=above)
    smallest = slower.sort("ratio").head(1)
    description = (
        f"the minimum of {scheme} over processor sharing, at {sum(smallest['size']):.0f} packets,"
    )
    return at_least(sum(smallest["ratio"]) or float("nan"), 3, description)


figure.claim(
    "under processor sharing flows up to 2000 packets are at least 3 times as fast", stated=False
)(judge_three_times)
figure.claim(
    "flows are so, too, if TCP begins with a window of 1, as in the formula", stated=False
)(partial(judge_three_times, scheme=FROM_ONE))
figure.claim("flows of 16 to 2000 packets are at least 3 times as fast", stated=False)(
    partial(judge_three_times, above=16)
)


@figure.claim("XCP is slower than TCP: flows take longer in most bins of size up to 2000 packets")
def xcp_is_slower(table: pl.DataFrame) -> Verdict:
    slower = ratios(table, XCP, TCP, up_to=2000)["ratio"]
    share: Any = (slower > 1).mean()
    return at_least(float("nan") if share is None else share, 0.5, "the share of bins")


@figure.claim("there are fewer flows in progress under sharing than under TCP, and most under XCP")
def flows_in_progress(table: pl.DataFrame) -> Verdict:
    shared, tcp_flows, xcp_flows = (mean_of(table, name, ACTIVE) for name in (SHARING, TCP, XCP))
    return every(
        [
            at_least(tcp_flows / shared, 1, f"TCP's {tcp_flows:.0f} over sharing's {shared:.0f}"),
            at_least(xcp_flows / tcp_flows, 1, f"XCP's {xcp_flows:.0f} over TCP's"),
        ]
    )
