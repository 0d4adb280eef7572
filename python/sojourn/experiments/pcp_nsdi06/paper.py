"""Common parts of the figures of PCP (NSDI 2006): PCP, TCP and router-based control."""

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
        "delayed ACKs (every second packet, 200 ms) and a minimum RTO of 0.2 s. Flows are judged "
        "from the time at which PCP has a history of almost every pair; queues and losses are "
        "those of the whole run."
    ),
    deviations=(
        "The authors wrote their own simulator and no longer publish it. Its initial window, "
        "initial RTO and end of a completion time are not stated: here they are 2 packets, 1 s and "
        "the last byte at the receiver. The numbers of its figures are not readable. The lengths "
        "of its runs are unknown; here all schemes have the same warm-up and length.",
        "The parameters of PCP that the paper does not give, above all the size of probes and the "
        "response to queues, were chosen by a sweep with criteria of its own (`python -m "
        "sojourn.experiments.pcp_nsdi06.sweep`). Two of them are statements of the paper that E1 "
        "therefore does not test, a mean of at most TCP's and few losses up to 0.75: they count as "
        "claims of our own.",
        "The paper calls the acceptance of probes probabilistic; its description was not available "
        "to us. Here the slope of delays plus its standard error must be below a bound; a draw "
        "from their distribution (`probes.acceptance` gaussian) loses more at the same mean.",
        "Router-based control is fair queueing and, once per round trip, a notification of a "
        "flow's fair share and of its own queue, as in the paper; the senders' response is our "
        "design.",
        "Processor sharing is simulated with the same flows as the transports, with one round trip "
        "for the handshake: 1.5 round trips and the time on an equally shared link.",
    ),
)

PAYLOAD, PACKET = 1210, 1250
"""Bytes of a full packet without and with its headers."""

LINK_NAME = "left->right"

LOADS = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
FEWER_LOADS = (0.15, 0.45, 0.75, 0.9)

LOAD_LABEL = "load (1 = 40 Mb/s)"

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"warm_up": 100, "measured": 200, "loads": (0.3, 0.75)},
    "quick": {"warm_up": 2000, "measured": 2000, "loads": FEWER_LOADS},
    "paper": {"warm_up": 2000, "measured": 10_000, "loads": LOADS},
}
"""Times are multiples of a flow's transmission, so all settings have the same number of flows."""


@dataclass(frozen=True)
class Setting:
    """Parameters that figures vary: the link, its RTTs and losses, the load, and the flows."""

    load: float = 0.6
    rate_bps: float = 40e6
    rtt_s: float = 0.025
    """Mean RTT; RTTs are drawn between 0.6 and 1.4 times the mean."""
    packets: int = 200
    """Packets in a flow."""
    loss: float = 0.0
    """Probability that the link loses a packet, independent of its queue."""

    @property
    def link(self) -> theory.Link:
        """The link of the closed forms."""
        return theory.Link(self.rate_bps, self.rtt_s, PACKET)

    @property
    def rtt_spread_s(self) -> float:
        """The standard deviation of RTTs, which are uniformly distributed."""
        return 0.8 * self.rtt_s / math.sqrt(12)

    def scenario(self, scale: Mapping[str, Any]) -> dict[str, Any]:
        """Return the common part of all schemes' scenarios."""
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
            # All flows can finish: a run ends as soon as all flows have finished.
            "time_limit": f"{begin + 2 * end:g} s",
        }

    def network(self) -> dict[str, Any]:
        """Return the network without traffic; RTTs are within 40 % of the mean."""

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
"""Sizes and interarrival times of E3, in place of equal sizes and Poisson arrivals."""

TCP, PCP, ROUTER, SHARING = "TCP", "PCP", "Router-based control", "Processor sharing"

FORMULA = f"{SHARING}, formula"


RELIABILITY = {"delayed_ack": "200 ms", "min_rto": "200 ms"}
"""Every second packet is acknowledged immediately, as for TCP in the paper."""


def reliable(kind: str, **parameters: Any) -> dict[str, Any]:
    """Return a transport with the retransmission parameters of the paper's TCP."""
    return {"transport": {"kind": kind, **parameters, "reliability": RELIABILITY}}


ideals: dict[str, dict[str, Any]] = {SHARING: {"model": "processor_sharing"}}

schemes: dict[str, dict[str, Any]] = {
    TCP: reliable("tcp", window={"initial": 2}),
    PCP: {"transport": "pcp"},
    ROUTER: {"transport": "fair_share", "queue": {"kind": "fair_queueing"}},
    **ideals,
}


def under(shared: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario under a scheme, with the same queue capacity for each kind of queue."""
    return override(shared, change, {"queue.capacity": shared["queue"]["capacity"]})


def over_loads(
    scale: Mapping[str, Any],
    schemes_to_run: Mapping[str, Mapping[str, Any]],
    *changes: Mapping[str, Any],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every scheme at every load; all schemes have the same flows."""
    for scheme, change in schemes_to_run.items():
        for load in scale["loads"]:
            shared = override(Setting(load).scenario(scale), *changes)
            yield {"scheme": scheme, "load": load}, under(shared, change)


def with_handshake(runs: Iterable[Run]) -> list[Run]:
    """Add the round trip of a handshake to the completion times of simulated ideals."""

    def with_round_trip(result: Result) -> Result:
        rate_bps = result.summary["load_reference"]["rate_bps"]
        # The ideal FCT is half a round trip plus the transmission.
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
    mean = metrics.link_counters(result, LINK_NAME).get("queue_mean_bytes", float("nan"))
    return metrics.Statistic(mean / PACKET)


def dropped(result: Result) -> metrics.Statistic:
    """Measure the share of arriving packets that the link's queue dropped; ideals drop nothing."""
    counters = metrics.link_counters(result, LINK_NAME)
    drops = counters.get("drops", float("nan"))
    return metrics.Statistic(drops / (drops + counters.get("packets", 0)))


ALMOST_NOTHING = 0.001
"""Maximum share of dropped packets where the paper reports (almost) no losses."""

measures: dict[str, metrics.Metric] = {
    MEAN: metrics.fct("mean"),
    DEVIATION: deviation,
    QUEUE: queue,
    LOSS: dropped,
}


def measured(runs: Iterable[Run], *, median: bool = False, **extra: metrics.Metric) -> pl.DataFrame:
    """Return the four quantities of all labels, and the metrics `more`, over their seeds."""
    rows = metrics.measure(with_handshake(runs), **measures, **extra)
    return metrics.across_seeds(rows.filter(pl.col("value").is_not_nan()), median=median)


def draw_four(  # noqa: PLR0913 - each is one property of the picture
    panels: Iterable[Axes],
    table: pl.DataFrame,
    x: str,
    label: str,
    *,
    log_x: bool = False,
    columns: int = 4,
) -> None:
    """Draw the four quantities against `x`; processor sharing, without a queue, as a thin line."""
    units = {MEAN: "ms", DEVIATION: "ms", QUEUE: "", LOSS: "%"}
    labels = {QUEUE: "mean queue (packets)"}
    ideal = pl.col("scheme").str.starts_with(SHARING)
    for panel, (metric, unit) in zip(panels, units.items(), strict=True):
        part = table.filter(metric=metric)
        axis_labels = (label, labels.get(metric, metric))
        timed = metric in (MEAN, DEVIATION)
        plot.against(
            panel, part.filter(~ideal), x=x, unit=unit, labels=axis_labels, log=timed, log_x=log_x
        )
        lines = part.filter(ideal).with_columns(pl.col("value") * plot.UNITS.get(unit, 1.0))
        plot.curves(panel, lines, x=x)
        if timed:
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.yaxis.set_minor_formatter(NullFormatter())
        plot.legend(panel, columns)


def value(table: pl.DataFrame, metric: str, scheme: str, **labels: Any) -> float:
    """Return a number of one point over the seeds; NaN if the scheme is missing."""
    return metrics.at(table, metric=metric, scheme=scheme, **labels)


def ratios(
    table: pl.DataFrame, metric: str, scheme: str, baseline: str, x: str = "load"
) -> dict[str, float]:
    """Return a metric under `scheme` over the same under `baseline`, at each point."""
    return {
        f"{metric}, {scheme} over {baseline} at {x} {at:g},": value(
            table, metric, scheme, **{x: at}
        )
        / value(table, metric, baseline, **{x: at})
        for at in points(table, scheme, x)
    }


def points(table: pl.DataFrame, scheme: str, x: str) -> list[float]:
    """Return the points at which a scheme was measured."""
    return sorted(set(table.filter(scheme=scheme)[x].drop_nulls()))


CLOSE, CLOSE_TRIPS = 1.5, 3
"""Bounds of "following" router-based control: at most `CLOSE` times its mean plus `CLOSE_TRIPS`
mean RTTs, because PCP must probe for the rate that routers report."""


def closeness(
    table: pl.DataFrame,
    x: str = "load",
    rtt_s: Callable[[float], float] = lambda _: BASE.rtt_s,
    label: str = "load",
    scheme: str = PCP,
) -> Verdict:
    """Judge that PCP is close to router-based control at each point; `rtt_s` gives the mean RTT."""
    return all_at_most(
        {
            f"{scheme} over the bound at {label} {at:g},": value(table, MEAN, scheme, **{x: at})
            / (CLOSE * value(table, MEAN, ROUTER, **{x: at}) + CLOSE_TRIPS * rtt_s(at))
            for at in points(table, ROUTER, x)
        },
        1,
    )


def losses(table: pl.DataFrame, scheme: str, x: str = "load") -> dict[str, float]:
    """Return the share of a scheme's packets that the queue drops, at each point."""
    return {
        f"share dropped, {scheme} at {x} {at:g},": value(table, LOSS, scheme, **{x: at})
        for at in points(table, scheme, x)
    }
