"""Common parts of the figures of "Why Flow-Completion Time is the Right Metric" (CCR 2006)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from sojourn import Paper, Result, Run, accounts, metrics, override, theory

paper = Paper(
    key="rcp06",
    citation=(
        "N. Dukkipati, N. McKeown: Why Flow-Completion Time is the Right Metric for Congestion "
        "Control. ACM SIGCOMM Computer Communication Review 36(1), 2006"
    ),
    setup=(
        "One link between all sources and all sinks, Poisson arrivals, Pareto sizes in whole "
        "packets of 1000 B on the link, of which 40 B are headers. The load includes headers. A "
        "completion time begins with the SYN and ends with the last packet received, so that no "
        "flow takes less than 1.5 round trips. TCP starts with a window of 2 packets, slow start "
        "and the window end at 4 bandwidth-delay products, a loss in slow start halves the window "
        "(of HighSpeed TCP too, as in ns-2), and the buffer holds one product. The initial RTO is "
        "3 s, the minimum RTO 0.2 s, in ticks of 10 ms, without timestamps. RCP's gains are 0.1 "
        "and 1; its buffer is unlimited."
    ),
    deviations=(
        "The captions do not give the initial window, the window's limit, timeouts, the buffer of "
        "some figures, and RCP's gains. The values here are from the authors' own script for "
        "figure 12 (with TCP Reno) and from the defaults of ns-2, which the authors used. Their "
        "initial RTO may have been 6 s, as in versions of ns-2 before 2006.",
        "The load counts sizes rounded up to whole packets; the authors' script uses the mean "
        "before rounding, and so offers 2 % more.",
        "All schemes of a figure have the same warm-up and length. The authors' script for figure "
        "12 ends after 300 seconds (RCP) or 100 000 flows (TCP); the lengths of other runs are not "
        "published.",
        "Processor sharing is drawn twice: the authors' formula, and a simulation with the same "
        "flows as the transports. Simulated ideals have no handshake; one round trip is added.",
        "Means are over the flows that start after the first tenth of the run and before its last "
        "fifth. An unfinished flow counts with its age at the end of the run; its bin of sizes is "
        "drawn hollow, as a lower bound.",
        "The scale `quick` has the published rates, except in B2 and B6, and runs shorter than "
        "five minutes; under XCP the number of flows grows for longer, and longer runs have longer "
        "FCTs.",
    ),
)

PAYLOAD, PACKET = 960, 1000
"""Bytes of a full packet without and with its headers."""

LINK_NAME = "left->right"
QUEUE, SENT = f"queue_bytes {LINK_NAME}", f"transmitted_bytes {LINK_NAME}"

BY_SIZE, FORMULA, ACTIVE = "completion time by size", "closed form", "flows in progress"
UTILISATION, WAITING, OFFERED = "utilisation", "queue", "offered load"
"""Quantities of the rows of a table: values of the column `metric`."""

LEAST_FLOWS = 30
"""Minimum mean number of flows per run for a bin of sizes to be judged, not only drawn."""

TCP, XCP, RCP = "TCP", "XCP", "RCP"
HIGHSPEED, SHARING, SRPT = "HighSpeed TCP", "Processor sharing", "SRPT"


@dataclass(frozen=True)
class Setting:
    """Link, load and flow sizes (in packets) of a caption."""

    link: theory.Link
    load: float
    sizes: theory.Pareto
    interval: str = "100 ms"
    """Interval of the samples of queue length and transmitted bytes."""

    def at(self, scale: Mapping[str, Any]) -> "Setting":
        """Return the setting at a scale, which may change the rate."""
        return replace(self, link=replace(self.link, rate_bps=scale["rate_bps"]))

    def scenario(self, length_s: float) -> dict[str, Any]:
        """Return the common part of all schemes' scenarios; arrivals last until the end."""
        length = f"{length_s:g} s"
        return {
            "name": "Poisson arrivals of Pareto sizes on one link",
            "topology": link_topology(self.link),
            "packet": dict(SHAPE),
            "workload": {
                "kind": "poisson",
                "load": self.load,
                "sizes": {
                    "kind": "pareto",
                    "mean": f"{self.sizes.mean * PAYLOAD:.0f} B",
                    "shape": self.sizes.shape,
                    "whole_packets": True,
                },
                "stop": length,
            },
            "warm_up": f"{length_s / 10:g} s",
            "time_limit": length,
            "samples": {"interval": self.interval, "queues": [LINK_NAME], "links": [LINK_NAME]},
        }

    def counted(
        self, scale: Mapping[str, Any], schemes: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield a shorter run of every scheme with FCT breakdown, until all flows have finished."""
        length_s = scale["account_s"]
        shared = self.scenario(length_s) | {"account": True, "samples": "none"}
        for scheme, change in schemes.items():
            time_limit = {"time_limit": f"{50 * length_s:g} s"}
            yield {"scheme": f"{scheme}{COUNTED}"}, override(shared, change, time_limit)

    def runs(
        self, scale: Mapping[str, Any], schemes: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield every scheme; all schemes have the same flows."""
        for scheme, change in schemes.items():
            yield {"scheme": scheme}, override(self.scenario(scale["length_s"]), change)


COUNTED = ", with breakdown"
"""Suffix of the names of schemes in the shorter runs with FCT breakdown."""


def split_by_breakdown(runs: Iterable[Run]) -> tuple[list[Run], list[Run]]:
    """Return the runs without FCT breakdown, and the runs with FCT breakdown."""
    without_and_with: tuple[list[Run], list[Run]] = [], []
    for run in runs:
        without_and_with[accounts.are_kept(run.result)].append(run)
    return without_and_with


BACKBONE = Setting(theory.Link(2.4e9, 0.2), 0.84, theory.Pareto(50, 1.2))
"""The setting of figures 2 and 6."""

FEW_FLOWS = Setting(theory.Link(1e9, 0.1), 0.4, theory.Pareto(500, 1.2), interval="10 ms")
"""The setting of figures 8 to 11: few concurrent, large flows."""

FEW_FLOWS_SCALES = {
    "smoke": {"rate_bps": 50e6, "length_s": 200},
    "quick": {"rate_bps": 1e9, "length_s": 120},
    "paper": {"rate_bps": 1e9, "length_s": 300},
}

NOT_RANDOM = "nothing in it is random"
"""Reason why a figure has one seed."""

MANY_FLOWS_SCALES = {
    "smoke": {"rate_bps": 50e6, "length_s": 10},
    "quick": {"rate_bps": 2.4e9, "length_s": 8},
    "paper": {"rate_bps": 2.4e9, "length_s": 100},
}

SHAPE = {"payload": f"{PAYLOAD} B", "header": f"{PACKET - PAYLOAD} B", "ack": "40 B"}


def link_topology(link: theory.Link) -> dict[str, Any]:
    """Return the topology of a link; each direction has half of the RTT."""
    return {
        "kind": "link",
        "rate": f"{link.rate_bps / 1e6:g} Mbps",
        "delay": f"{link.rtt_s * 500:g} ms",
    }


def packets(link: theory.Link, products: float = 1) -> int:
    """Return a multiple of the bandwidth-delay product in packets."""
    return round(products * link.bandwidth_delay)


RELIABILITY = {
    "initial_rto": "3 s",
    "min_rto": "200 ms",
    "clock_granularity": "10 ms",
    "timestamps": False,
    "handshake": True,
}


def tcp(
    link: theory.Link, kind: str = "tcp", recovery: str = "selective_repeat", window: float = 4
) -> dict[str, Any]:
    """Return a TCP variant and its buffer; `window` is its limit in bandwidth-delay products."""
    max_packets = packets(link, window)
    return {
        "transport": {
            "kind": kind,
            "window": {
                "initial": 2,
                "initial_ssthresh": max_packets,
                "max": max_packets,
                "slow_start_decrease": 0.5,
            },
            "reliability": {**RELIABILITY, "recovery": recovery},
        },
        "queue": {"kind": "drop_tail", "capacity": f"{packets(link)} packets"},
    }


def red(link: theory.Link, kind: str, *, ecn: bool) -> dict[str, Any]:
    """Return a TCP variant with adaptive RED, which drops or marks."""
    return override(
        tcp(link, kind),
        {
            "transport": {"ecn": ecn},
            "queue": {
                "kind": "red",
                "capacity": f"{packets(link)} packets",
                "gentle": True,
                "adaptive": True,
                "target_delay": "5 ms",
                "ecn": ecn,
            },
        },
    )


DROP_TAIL, RED, RED_ECN = "Drop-tail", "RED", "RED and ECN"


def queues(link: theory.Link) -> dict[str, dict[str, Any]]:
    """Return HighSpeed TCP with each kind of queue."""
    kind = "high_speed_tcp"
    return {
        DROP_TAIL: tcp(link, kind),
        RED: red(link, kind, ecn=False),
        RED_ECN: red(link, kind, ecn=True),
    }


def xcp(link: theory.Link) -> dict[str, Any]:
    """Return XCP, with its buffer."""
    return {
        "transport": {"kind": "xcp", "initial_window": 2, "reliability": RELIABILITY},
        "queue": {"kind": "drop_tail", "capacity": f"{packets(link)} packets"},
    }


def rcp(preset: str = "flow_sizes") -> dict[str, Any]:
    """Return RCP with the gains of a preset, by default of the authors' study of flow sizes."""
    return {
        "transport": "rcp",
        "router": {"kind": "rcp", "preset": preset},
        "queue": "drop_tail",
    }


RCP_AS_XCP = "RCP, gains of XCP"


def all_schemes(
    link: theory.Link, recovery: str, scale: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return TCP with a recovery, XCP, RCP, and the ideals.

    The scale `quick` omits RCP with the gains of XCP, which no claim concerns.
    """
    drawn_only = {} if scale["name"] == "quick" else {RCP_AS_XCP: rcp("as_xcp")}
    return {TCP: tcp(link, recovery=recovery), XCP: xcp(link), RCP: rcp(), **drawn_only, **ideals}


ideals: dict[str, dict[str, Any]] = {
    SHARING: {"model": "processor_sharing"},
    SRPT: {"model": "srpt"},
}


def with_handshake(runs: Iterable[Run]) -> list[Run]:
    """Add the round trip of a handshake to the completion times of simulated ideals."""

    def with_round_trip(result: Result) -> Result:
        round_trip = 2 * metrics.seconds(result.summary["scenario"]["topology"]["delay"])
        flows = result.flows.with_columns(pl.col("fct_s") + round_trip)
        return result.with_flows(flows)

    return [
        Run(run.labels, with_round_trip(run.result)) if run.labels["scheme"] in ideals else run
        for run in runs
    ]


def rate_bps(runs: Sequence[Run]) -> float:
    """Return the rate of the link."""
    return float(runs[0].result.summary["load_reference"]["rate_bps"])


def size_table(runs: Sequence[Run], where: pl.Expr | None = None) -> pl.DataFrame:
    """Return FCTs by flow size, without the flows of the last fifth of the run."""
    end_s = metrics.seconds(runs[0].result.summary["scenario"]["time_limit"])
    early = pl.col("start_s") < 0.8 * end_s
    selection = early if where is None else early & where
    curve = metrics.size_curve(with_handshake(runs), payload=PAYLOAD, where=selection)
    seeds = len({run.labels["seed"] for run in runs})
    return curve.with_columns(metric=pl.lit(BY_SIZE), runs=pl.lit(seeds))


def formula_table(setting: Setting, runs: Sequence[Run], largest: float) -> pl.DataFrame:
    """Return the closed forms by flow size: processor sharing, SRPT, slow start on an idle link."""
    link = replace(setting.link, rate_bps=rate_bps(runs))
    octaves = 1 + int(largest).bit_length()
    sizes = sorted({round(2 ** (step / 12)) for step in range(12 * octaves)} - {0})
    forms = {
        f"{SHARING}, formula": theory.processor_sharing(link, setting.load, sizes),
        f"{SRPT}, formula": theory.srpt(link, setting.load, setting.sizes, sizes),
        "Slow start, formula": theory.slow_start(link, sizes, initial_window=2),
    }
    return pl.concat(
        pl.DataFrame({"scheme": name, "size": sizes, "mean": times, "metric": FORMULA})
        .with_columns(pl.col("size").cast(pl.Float64))
        .filter(pl.col("size") <= largest)
        for name, times in forms.items()
    )


def along_size(setting: Setting, runs: Sequence[Run]) -> pl.DataFrame:
    """Return FCTs by flow size, and the closed forms up to the largest size."""
    sizes = size_table(runs)
    largest: Any = sizes["size"].max()
    return pl.concat([sizes, formula_table(setting, runs, float(largest or 1))], how="diagonal")


def drawn_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """Return the closed forms of a table without SRPT, which few pictures have room for."""
    return table.filter(pl.col("metric") == FORMULA, ~pl.col("scheme").str.starts_with(SRPT))


def over_time(runs: Sequence[Run], points: int = 400) -> pl.DataFrame:
    """Return flows in progress, utilisation and the queue in packets over time."""
    simulated = [run for run in runs if not run.result.samples.is_empty()]
    transmitted = metrics.series(simulated, SENT, points, per_second=True)
    share = 8 / rate_bps(runs)
    transmitted = transmitted.with_columns(
        pl.col("value", "high") * share, metric=pl.lit(UTILISATION)
    )
    queued = metrics.series(simulated, QUEUE, points)
    queued = queued.with_columns(pl.col("value", "high") / PACKET, metric=pl.lit(WAITING))
    active = metrics.in_progress(with_handshake(runs), points).with_columns(metric=pl.lit(ACTIVE))
    return pl.concat([active, transmitted, queued], how="diagonal")


def offered(result: Result) -> metrics.Statistic:
    """Measure the load offered after the warm-up, which varies because sizes are heavy-tailed."""
    scenario = result.summary["scenario"]
    span = metrics.seconds(scenario["time_limit"]) - metrics.seconds(scenario["warm_up"])
    sizes = metrics.judged(result)["size_bytes"]
    bits = 8 * PACKET * float((sizes / PAYLOAD).ceil().sum())
    return metrics.Statistic(bits / span / result.summary["load_reference"]["rate_bps"])


def at_sizes(
    table: pl.DataFrame, scheme: str, up_to: float = float("inf"), above: float = 0
) -> pl.DataFrame:
    """Return the bins of a scheme with at least `LEAST_FLOWS` flows, within bounds of size."""
    return table.filter(
        pl.col("metric") == BY_SIZE,
        pl.col("scheme") == scheme,
        pl.col("flows") >= LEAST_FLOWS * pl.col("runs"),
        pl.col("size_hi") <= up_to,
        pl.col("size_lo") >= above,
    )


def ratios(
    table: pl.DataFrame, scheme: str, baseline: str, up_to: float = float("inf"), above: float = 0
) -> pl.DataFrame:
    """Return the ratio of mean FCTs under two schemes by size, and its standard error."""
    upper, lower = (at_sizes(table, name, up_to, above) for name in (scheme, baseline))
    joined = upper.join(lower, on="size_lo", suffix="_other", maintain_order="left")
    ratio = pl.col("mean") / pl.col("mean_other")
    error, baseline_error = (
        pl.col(f"stderr{suffix}") / pl.col(f"mean{suffix}") for suffix in ("", "_other")
    )
    return joined.select("size", ratio=ratio, error=ratio * (error**2 + baseline_error**2).sqrt())


def after_warm_up(table: pl.DataFrame, scheme: str, metric: str) -> pl.DataFrame:
    """Return a quantity over time after the warm-up, the first tenth of the run."""
    rows = table.filter(scheme=scheme, metric=metric)
    return rows.filter(pl.col("time_s") >= pl.col("time_s").max() / 10)


def first_seed(table: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return a quantity over time in the first seed, for drawing."""
    return table.filter(pl.col("metric") == metric, pl.col("seed") == table["seed"].min())


def mean_of(table: pl.DataFrame, scheme: str, metric: str) -> float:
    """Return the mean over time of a quantity of a scheme; NaN without samples."""
    mean: Any = after_warm_up(table, scheme, metric)["value"].mean()
    return float("nan") if mean is None else float(mean)
