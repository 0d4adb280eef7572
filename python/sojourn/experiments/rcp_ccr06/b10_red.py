"""Figure B10: RED and ECN make flows longer that leave slow start."""

from collections.abc import Iterator

import polars as pl
from matplotlib.axes import Axes

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    accounts,
    at_least,
    at_most,
    every,
    metrics,
    plot,
)

from .paper import (
    BY_SIZE,
    COUNTED,
    DROP_TAIL,
    FEW_FLOWS,
    FEW_FLOWS_SCALES,
    PAYLOAD,
    RED_ECN,
    along_size,
    drawn_formulas,
    paper,
    queues,
    ratios,
    split_by_breakdown,
)

figure = Figure(
    paper,
    id="b10",
    title="HighSpeed TCP with RED and ECN",
    source="Figure 10",
    # With large flows enough for a bin of them to be judged, in each of enough seeds.
    scales={
        "smoke": {"rate_bps": 200e6, "length_s": 400, "account_s": 5},
        "quick": {**FEW_FLOWS_SCALES["quick"], "account_s": 20, "seeds": 8},
        "paper": {**FEW_FLOWS_SCALES["paper"], "account_s": 60},
    },
    deviations=(
        "Flows finish in slow start for certain if they are small; judged are up to 200 packets, "
        "and 2000 and more, which a window that was halved once takes many round trips for.",
        "What flows waited for is told by runs of their own with the first 20 seconds' flows (60 "
        "at the scale `paper`): a run with accounts takes three to four times as long.",
        "That queueing may be a tenth of the time more, rather than nothing, was put when first "
        "runs had been seen: it is less, but four seeds do not tell that from none.",
    ),
)


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    setting = FEW_FLOWS.at(scale)
    every_queue = queues(setting.link)
    yield from setting.runs(scale, every_queue)
    yield from setting.counted(scale, {name: every_queue[name] for name in (DROP_TAIL, RED_ECN)})


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    runs, counted = split_by_breakdown(runs)
    return pl.concat([along_size(FEW_FLOWS, runs), *divided(counted)], how="diagonal")


LARGE = metrics.Bucket("2000 packets and more", above=2000 * PAYLOAD - 1)

LONGER = "longer than with drop-tail"


def divided(runs: list[Run]) -> Iterator[pl.DataFrame]:
    """Yield what large flows take, by part, and how much longer that is than with drop-tail."""
    against = f"{DROP_TAIL}{COUNTED}"
    told = ("scheme", "metric", "value", "at_least")
    if not (means := accounts.by_size(runs, [LARGE])).is_empty():
        yield means.select(told)
    if not (longer := accounts.differences(runs, "scheme", against, [LARGE])).is_empty():
        yield longer.with_columns(scheme=pl.lit(LONGER)).select(told)


@figure.draw
def draw(axes: Axes, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    forms = drawn_formulas(table)
    plot.along_sizes(axes, table.filter(metric=BY_SIZE), curves=forms, limits=(50, 2e5))


def longer(table: pl.DataFrame, *, up_to: float = float("inf"), above: float = 0) -> float:
    """Return how much longer flows take with RED and ECN than with drop-tail: the mean of bins."""
    found = ratios(table, RED_ECN, DROP_TAIL, up_to=up_to, above=above)["ratio"]
    return float(found.mean()) if found.len() else float("nan")  # type: ignore[arg-type]


@figure.claim("flows that leave slow start take longer than with drop-tail (1.3 times at least)")
def longer_beyond_slow_start(table: pl.DataFrame) -> Verdict:
    return at_least(longer(table, above=2000), 1.3, "RED and ECN over drop-tail, 2000 packets up,")


@figure.claim("flows that finish in slow start are affected much less (a third at most)")
def small_are_spared(table: pl.DataFrame) -> Verdict:
    small, large = longer(table, up_to=200), longer(table, above=2000)
    return every(
        [
            at_most(small, 1.2, "RED and ECN over drop-tail up to 200 packets"),
            at_most((small - 1) / (large - 1), 1 / 3, "what is added to small ones, over large"),
        ]
    )


@figure.claim(
    "what flows of 2000 packets and more take longer than with drop-tail is round trips of the "
    "window and repairs: at least 0.3 of the time with drop-tail, and of queueing at most 0.1",
    stated=False,
)
def rounds_not_queues(table: pl.DataFrame) -> Verdict:
    before = metrics.at(table, scheme=f"{DROP_TAIL}{COUNTED}", metric=accounts.TOTAL)

    def longer(*parts: str) -> float:
        return sum(metrics.at(table, scheme=LONGER, metric=part) for part in parts) / before

    repaired = longer(accounts.ROUND_TRIPS, accounts.REPAIRS, accounts.TIME_OUTS)
    queued = longer(accounts.OTHERS, accounts.OWN, accounts.CONTROL)
    said = f"of the {before:.3g} s with drop-tail"
    return every(
        [
            at_least(repaired, 0.3, f"round trips and repairs more, {said},"),
            at_most(queued, 0.1, f"queueing more, {said},"),
        ]
    )
