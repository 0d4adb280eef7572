"""PCP (NSDI 2006): asking for a rate by a short probe, against TCP and routers that tell."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from sojourn import Paper, Result, Run, Verdict, all_at_most, metrics, override, plot, theory

paper = Paper(
    key="pcp06",
    citation=(
        "T. Anderson, A. Collins, A. Krishnamurthy, J. Zahorjan: PCP: Efficient Endpoint "
        "Congestion Control. NSDI 2006"
    ),
    setup=(
        "A dumbbell of 100 pairs of hosts around a link of 40 Mb/s, with round trips drawn evenly "
        "between 15 and 35 ms and a drop-tail buffer of 100 packets, a bandwidth-delay product. "
        "Flows of 200 packets of 1250 B (40 B of them headers) start at random between random "
        "pairs (Poisson). Load 1 is the link's rate, headers included. A completion time begins "
        "with the SYN and ends with the last byte received. TCP has SACK, 2 packets at first, "
        "delayed ACKs (every second packet, 200 ms) and time-outs of at least 0.2 s. Judged are "
        "flows that start once PCP has met almost every pair; queues and losses are those of the "
        "whole run."
    ),
    deviations=(
        "The authors wrote their own simulator and no longer publish it. Its initial window, first "
        "time-out and end of a completion time are not stated: ours are 2 packets, 1 s and the "
        "last byte at the receiver. Its figures show no numbers that we could read.",
        "What the paper leaves open of PCP, above all how large probes are and how strongly "
        "queues are answered, was chosen by a sweep with criteria of its own "
        "(`python -m sojourn.experiments.pcp_nsdi06.sweep`). Two of them are claims of E1, which "
        "that figure therefore does not test: a mean of at most TCP's, and few losses up to 0.75.",
        "The paper calls the judgement of probes probabilistic, in a way that we could not read. "
        "Ours asks that the slope of delays and its standard error together stay below a bound; a "
        "draw from their distribution (`probes.acceptance` gaussian) loses more at the same mean.",
        "Router-based control is fair queueing and, once a round trip, the news of a flow's fair "
        "share and of its own queue, which are the paper's words; how senders follow it is ours.",
        "Processor sharing is simulated on the very flows that the transports see, with a round "
        "trip for the handshake: 1.5 round trips and the time on a link that is shared evenly.",
    ),
)

PAYLOAD, PACKET = 1210, 1250
"""Bytes of a full packet without and with its headers."""

WIRE = "left->right"

LOADS = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
FEWER_LOADS = (0.15, 0.45, 0.75, 0.9)

LOAD_LABEL = "load (1 = 40 Mb/s)"

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"seeds": 1, "warm_up": 100, "measured": 200, "loads": (0.3, 0.75)},
    "quick": {"seeds": 5, "warm_up": 2000, "measured": 2000, "loads": FEWER_LOADS},
    "paper": {"seeds": 10, "warm_up": 2000, "measured": 10_000, "loads": LOADS},
}
"""Spans of time are multiples of a flow's transmission, so that all settings have as many flows."""


@dataclass(frozen=True)
class Setting:
    """What a figure varies: the link, its round trips and losses, the load, and the flows."""

    load: float = 0.6
    rate_bps: float = 40e6
    rtt_s: float = 0.025
    """The mean: round trips are drawn between 0.6 and 1.4 times that."""
    packets: int = 200
    """Packets in a flow."""
    loss: float = 0.0
    """Probability that the link loses a packet, whatever its queue."""

    @property
    def link(self) -> theory.Link:
        """The link of the closed forms."""
        return theory.Link(self.rate_bps, self.rtt_s, PACKET)

    @property
    def rtt_spread_s(self) -> float:
        """The standard deviation of round trips, which are drawn evenly."""
        return 0.8 * self.rtt_s / math.sqrt(12)

    def scenario(self, scale: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the scenarios of all schemes share."""
        transmission_s = self.packets / self.link.packets_per_s
        begin, end = (scale[name] * transmission_s for name in ("warm_up", "measured"))
        return {
            **self.network(),
            "name": "Flows of one size at random on one link",
            "workload": {
                "kind": "poisson",
                "load": self.load,
                "sizes": {"kind": "fixed", "size": f"{self.packets * PAYLOAD} B"},
                "pairs": "opposite",
                "stop": f"{begin + end:g} s",
            },
            "warm_up": f"{begin:g} s",
            # Time to finish for whoever has started: runs end as soon as all have.
            "time_limit": f"{begin + 2 * end:g} s",
        }

    def network(self) -> dict[str, Any]:
        """Return the network, whatever its traffic; of round trips four tenths are drawn."""

        def milliseconds(share: float) -> str:
            return f"{1e3 * share * self.rtt_s:g} ms"

        return {
            "topology": {
                "kind": "dumbbell",
                "senders": 100,
                "receivers": 100,
                "rate": "1 Gbps",
                "delay": milliseconds(0.08),
                "longest_delay": milliseconds(0.48),
                "bottleneck_rate": f"{self.rate_bps / 1e6:g} Mbps",
                "bottleneck_delay": milliseconds(0.14),
                "loss": self.loss,
            },
            "packet": {"payload": f"{PAYLOAD} B", "header": f"{PACKET - PAYLOAD} B", "ack": "40 B"},
            "queue": {"kind": "drop_tail", "capacity": f"{self.link.bandwidth_delay:.0f} packets"},
        }


BASE = Setting()

HEAVY_TAILS = {
    "workload": {
        "gap_shape": 1.2,
        "sizes": {
            "kind": "pareto",
            "mean": f"{BASE.packets * PAYLOAD} B",
            "shape": 1.25,
            "whole_packets": True,
        },
    }
}
"""Sizes and gaps of E3, in place of flows of one size at random."""

TCP, PCP, ROUTER, SHARING = "TCP", "PCP", "Router-based control", "Processor sharing"

FORMULA = f"{SHARING}, formula"


RELIABILITY = {"delayed_ack": "200 ms", "min_rto": "200 ms"}
"""Every second packet is acknowledged at once, as the paper has it for TCP."""


def reliable(kind: str, **parameters: Any) -> dict[str, Any]:
    """Return a transport that sends again what is lost as the paper's TCP does."""
    return {"transport": {"kind": kind, **parameters, "reliability": RELIABILITY}}


ideals: dict[str, dict[str, Any]] = {SHARING: {"model": "processor_sharing"}}

schemes: dict[str, dict[str, Any]] = {
    TCP: reliable("tcp", window={"initial": 2}),
    PCP: {"transport": "pcp"},
    ROUTER: {"transport": "fair_share", "queue": {"kind": "fair_queueing"}},
    **ideals,
}


def under(shared: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario under a scheme: its queue has as much room, whatever its kind."""
    return override(shared, change, {"queue.capacity": shared["queue"]["capacity"]})


def over_loads(
    scale: Mapping[str, Any], chosen: Mapping[str, Mapping[str, Any]], *changes: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every scheme at every load: all of them see the same flows."""
    for scheme, change in chosen.items():
        for load in scale["loads"]:
            shared = override(Setting(load).scenario(scale), *changes)
            yield {"scheme": scheme, "load": load}, under(shared, change)


def shaken(runs: Iterable[Run]) -> list[Run]:
    """Add the round trip of a handshake to the completion times of simulated ideals."""

    def with_round_trip(result: Result) -> Result:
        rate_bps = result.summary["load_reference"]["rate_bps"]
        # Alone, a flow takes half a round trip besides its transmission.
        packets = (pl.col("size_bytes") / PAYLOAD).ceil()
        sent_s = 8 * (pl.col("size_bytes") + packets * (PACKET - PAYLOAD)) / rate_bps
        round_trip = 2 * (pl.col("ideal_fct_s") - sent_s)
        flows = result.flows.with_columns(fct_s=pl.col("fct_s") + round_trip)
        return result.with_flows(flows)

    return [
        Run(run.labels, with_round_trip(run.result)) if run.labels["scheme"] in ideals else run
        for run in runs
    ]


MEAN, DEVIATION = "mean completion time", "standard deviation"

QUEUE, LOSS = "mean queue", "packets dropped"


def deviation(result: Result) -> metrics.Statistic:
    """Measure the standard deviation of the completion times of flows that have finished."""
    times = metrics.timed(result)["fct_s"]
    spread: Any = times.std()
    return metrics.Statistic(float("nan") if spread is None else spread, times.has_nulls())


def queue(result: Result) -> metrics.Statistic:
    """Measure the mean queue of the link, in full packets; ideals have none."""
    mean = metrics.link_counters(result, WIRE).get("queue_mean_bytes", float("nan"))
    return metrics.Statistic(mean / PACKET)


def dropped(result: Result) -> metrics.Statistic:
    """Measure which share of what came to the link's queue was dropped; ideals drop nothing."""
    counters = metrics.link_counters(result, WIRE)
    drops = counters.get("drops", float("nan"))
    return metrics.Statistic(drops / (drops + counters.get("packets", 0)))


ALMOST_NOTHING = 0.001
"""The share of packets that may be dropped where the paper sees (almost) none."""

measures: dict[str, metrics.Metric] = {
    MEAN: metrics.fct("mean"),
    DEVIATION: deviation,
    QUEUE: queue,
    LOSS: dropped,
}


def measured(runs: Iterable[Run], *, median: bool = False, **more: metrics.Metric) -> pl.DataFrame:
    """Return the four quantities of all labels, and more, over their seeds."""
    rows = metrics.measure(shaken(runs), **measures, **more)
    return metrics.across_seeds(rows.filter(pl.col("value").is_not_nan()), median=median)


def draw_four(  # noqa: PLR0913 - each names one thing to be seen
    panels: Iterable[Axes],
    table: pl.DataFrame,
    x: str,
    label: str,
    *,
    log_x: bool = False,
    columns: int = 4,
) -> None:
    """Draw the four quantities against `x`; sharing, which has no queue, as a thin line."""
    units = {MEAN: "ms", DEVIATION: "ms", QUEUE: "", LOSS: "%"}
    labels = {QUEUE: "mean queue (packets)"}
    ideal = pl.col("scheme").str.starts_with(SHARING)
    for panel, (metric, unit) in zip(panels, units.items(), strict=True):
        part = table.filter(metric=metric)
        said = (label, labels.get(metric, metric))
        timed = metric in (MEAN, DEVIATION)
        plot.against(
            panel, part.filter(~ideal), x=x, unit=unit, labels=said, log=timed, log_x=log_x
        )
        lines = part.filter(ideal).with_columns(pl.col("value") * plot.UNITS.get(unit, 1.0))
        plot.curves(panel, lines, x=x)
        if timed:
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.yaxis.set_minor_formatter(NullFormatter())
        plot.legend(panel, columns)


def value(table: pl.DataFrame, metric: str, scheme: str, **labels: Any) -> float:
    """Return a number of one point over the seeds; NaN where a scheme is not there."""
    return metrics.at(table, metric=metric, scheme=scheme, **labels)


def ratios(
    table: pl.DataFrame, metric: str, one: str, other: str, x: str = "load"
) -> dict[str, float]:
    """Return how many times as much `one` has as `other`, at each point."""
    return {
        f"{metric}, {one} over {other} at {x} {at:g},": value(table, metric, one, **{x: at})
        / value(table, metric, other, **{x: at})
        for at in points(table, one, x)
    }


def points(table: pl.DataFrame, scheme: str, x: str) -> list[float]:
    """Return where a scheme was measured."""
    return sorted(set(table.filter(scheme=scheme)[x].drop_nulls()))


CLOSE, CLOSE_TRIPS = 1.5, 3
"""What "close to" router-based control and "following" it mean: at most so many times its mean, and
so many mean round trips more, since PCP has to ask for what routers tell."""


def closeness(
    table: pl.DataFrame,
    x: str = "load",
    rtt_s: Callable[[float], float] = lambda _: BASE.rtt_s,
    label: str = "load",
    scheme: str = PCP,
) -> Verdict:
    """Judge that PCP is close to router-based control at each point, of a mean round trip each."""
    return all_at_most(
        {
            f"{scheme} over what is close at {label} {at:g},": value(table, MEAN, scheme, **{x: at})
            / (CLOSE * value(table, MEAN, ROUTER, **{x: at}) + CLOSE_TRIPS * rtt_s(at))
            for at in points(table, ROUTER, x)
        },
        1,
    )


def losses(table: pl.DataFrame, scheme: str, x: str = "load") -> dict[str, float]:
    """Return which share of its packets a scheme loses to the queue, at each point."""
    return {
        f"share dropped, {scheme} at {x} {at:g},": value(table, LOSS, scheme, **{x: at})
        for at in points(table, scheme, x)
    }
