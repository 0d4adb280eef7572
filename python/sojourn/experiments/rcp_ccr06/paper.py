"""Why Flow-Completion Time is the Right Metric (CCR 2006): slow start and XCP against sharing."""

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
        "packets of 1000 B on the wire, of which 40 B are headers. The load counts headers too. A "
        "completion time begins with the SYN and ends with the last packet received, so that no "
        "flow takes less than 1.5 round trips. TCP starts with a window of 2 packets, slow start "
        "and the window end at 4 bandwidth-delay products, a loss in slow start halves the window "
        "(of HighSpeed TCP too, as in ns-2), and the buffer holds one product; time-outs are 3 s "
        "at first, then at least 0.2 s in ticks of 10 ms, without timestamps. RCP's gains are 0.1 "
        "and 1, its buffer has no limit."
    ),
    deviations=(
        "The captions leave open the initial window, the window's limit, time-outs, the buffer of "
        "some figures and RCP's gains: these are the authors' own script for figure 12 (with TCP "
        "Reno) and the defaults of ns-2, which they used. Their initial time-out may have been "
        "6 s, as in versions of ns-2 before 2006.",
        "The load counts sizes rounded up to whole packets; the authors' script takes the mean "
        "before rounding, and so offers 2 % more.",
        "Processor sharing is drawn twice: the authors' formula, and simulated on the very flows "
        "that the transports see. Simulated ideals have no handshake; a round trip is added.",
        "Means are those of the flows that start after the first tenth of the run and before its "
        "last fifth. A flow that had not finished at the end counts as long as it had waited; its "
        "bin of sizes is drawn hollow and is a lower bound.",
        "The scale `quick` has the published rates, but for B2 and B6, and shorter runs than "
        "five minutes; XCP gathers flows for longer, and is slower in the long run.",
    ),
)

PAYLOAD, PACKET = 960, 1000
"""Bytes of a full packet without and with its headers."""

WIRE = "left->right"
QUEUE, SENT = f"queue_bytes {WIRE}", f"transmitted_bytes {WIRE}"

BY_SIZE, FORMULA, ACTIVE = "completion time by size", "closed form", "flows in progress"
UTILISATION, WAITING, OFFERED = "utilisation", "queue", "offered load"
"""What a row of a table tells, in the column `metric`."""

LEAST_FLOWS = 30
"""Bins of sizes with fewer flows a run, on average, are drawn but not judged."""

TCP, XCP, RCP = "TCP", "XCP", "RCP"
HIGHSPEED, SHARING, SRPT = "HighSpeed TCP", "Processor sharing", "SRPT"


@dataclass(frozen=True)
class Setting:
    """What a caption gives: the link, the load and the sizes, in packets."""

    link: theory.Link
    load: float
    sizes: theory.Pareto
    interval: str = "100 ms"
    """Time between samples of the queue and of what has been sent."""

    def at(self, scale: Mapping[str, Any]) -> "Setting":
        """Return the setting at a scale, which may change the rate."""
        return replace(self, link=replace(self.link, rate_bps=scale["rate_bps"]))

    def scenario(self, length_s: float) -> dict[str, Any]:
        """Return what the scenarios of all schemes share; arrivals do not stop before the end."""
        length = f"{length_s:g} s"
        return {
            "name": "Poisson arrivals of Pareto sizes on one link",
            "topology": wire(self.link),
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
            "samples": {"interval": self.interval, "queues": [WIRE], "links": [WIRE]},
        }

    def counted(
        self, scale: Mapping[str, Any], schemes: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield every scheme again for a shorter time, with accounts, until all flows are over."""
        length_s = scale["account_s"]
        shared = self.scenario(length_s) | {"account": True, "samples": "none"}
        for scheme, change in schemes.items():
            given = {"time_limit": f"{50 * length_s:g} s"}
            yield {"scheme": f"{scheme}{COUNTED}"}, override(shared, change, given)

    def runs(
        self, scale: Mapping[str, Any], schemes: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield every scheme: all of them see the same flows."""
        for scheme, change in schemes.items():
            yield {"scheme": scheme}, override(self.scenario(scale["length_s"]), change)


COUNTED = ", with accounts"
"""How the names of schemes end whose runs are shorter, and say where the time of flows went."""


def split_by_breakdown(runs: Iterable[Run]) -> tuple[list[Run], list[Run]]:
    """Return the runs without accounts, and those with."""
    without_and_with: tuple[list[Run], list[Run]] = [], []
    for run in runs:
        without_and_with[accounts.are_kept(run.result)].append(run)
    return without_and_with


BACKBONE = Setting(theory.Link(2.4e9, 0.2), 0.84, theory.Pareto(50, 1.2))
"""The setting of figures 2 and 6."""

FEW_FLOWS = Setting(theory.Link(1e9, 0.1), 0.4, theory.Pareto(500, 1.2), interval="10 ms")
"""The setting of figures 8 to 11: flows so large that few are in progress."""

FEW_FLOWS_SCALES = {
    "smoke": {"rate_bps": 50e6, "length_s": 200},
    "quick": {"rate_bps": 1e9, "length_s": 120, "seeds": 7},
    "paper": {"rate_bps": 1e9, "length_s": 300, "seeds": 12},
}

MANY_FLOWS_SCALES = {
    "smoke": {"rate_bps": 50e6, "length_s": 10},
    "quick": {"rate_bps": 2.4e9, "length_s": 8, "seeds": 3},
    "paper": {"rate_bps": 2.4e9, "length_s": 100, "seeds": 6},
}

SHAPE = {"payload": f"{PAYLOAD} B", "header": f"{PACKET - PAYLOAD} B", "ack": "40 B"}


def wire(link: theory.Link) -> dict[str, Any]:
    """Return the topology of a link: half a round trip each way."""
    return {
        "kind": "link",
        "rate": f"{link.rate_bps / 1e6:g} Mbps",
        "delay": f"{link.rtt_s * 500:g} ms",
    }


def packets(link: theory.Link, products: float = 1) -> int:
    """Return so many bandwidth-delay products in packets."""
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
    """Return TCP of a kind, with its buffer; `window` is its limit in bandwidth-delay products."""
    most = packets(link, window)
    return {
        "transport": {
            "kind": kind,
            "window": {
                "initial": 2,
                "initial_ssthresh": most,
                "max": most,
                "slow_start_decrease": 0.5,
            },
            "reliability": {**RELIABILITY, "recovery": recovery},
        },
        "queue": {"kind": "drop_tail", "capacity": f"{packets(link)} packets"},
    }


def red(link: theory.Link, kind: str, *, ecn: bool) -> dict[str, Any]:
    """Return TCP of a kind with adaptive RED, which drops or marks."""
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
    """Return RCP with the gains of a preset: those of the authors' study of flow sizes."""
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

    RCP with the gains of XCP, of which nothing is claimed, is left out at the scale `quick`.
    """
    drawn_too = {} if scale["name"] == "quick" else {RCP_AS_XCP: rcp("as_xcp")}
    return {TCP: tcp(link, recovery=recovery), XCP: xcp(link), RCP: rcp(), **drawn_too, **ideals}


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
    """Return completion times along flow size, of flows that had time to finish."""
    end_s = metrics.seconds(runs[0].result.summary["scenario"]["time_limit"])
    early = pl.col("start_s") < 0.8 * end_s
    chosen = early if where is None else early & where
    curve = metrics.size_curve(with_handshake(runs), payload=PAYLOAD, where=chosen)
    seeds = len({run.labels["seed"] for run in runs})
    return curve.with_columns(metric=pl.lit(BY_SIZE), runs=pl.lit(seeds))


def formula_table(setting: Setting, runs: Sequence[Run], largest: float) -> pl.DataFrame:
    """Return the closed forms along flow size: processor sharing, SRPT and slow start alone."""
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
    """Return completion times along flow size, and the closed forms as far as there are sizes."""
    sizes = size_table(runs)
    largest: Any = sizes["size"].max()
    return pl.concat([sizes, formula_table(setting, runs, float(largest or 1))], how="diagonal")


def drawn_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """Return the closed forms of a table, without SRPT's, which few pictures have room for."""
    return table.filter(pl.col("metric") == FORMULA, ~pl.col("scheme").str.starts_with(SRPT))


def over_time(runs: Sequence[Run], points: int = 400) -> pl.DataFrame:
    """Return flows in progress, utilisation and the queue in packets over time."""
    simulated = [run for run in runs if not run.result.samples.is_empty()]
    used = metrics.series(simulated, SENT, points, per_second=True)
    share = 8 / rate_bps(runs)
    used = used.with_columns(pl.col("value", "high") * share, metric=pl.lit(UTILISATION))
    queue = metrics.series(simulated, QUEUE, points)
    queue = queue.with_columns(pl.col("value", "high") / PACKET, metric=pl.lit(WAITING))
    active = metrics.in_progress(with_handshake(runs), points).with_columns(metric=pl.lit(ACTIVE))
    return pl.concat([active, used, queue], how="diagonal")


def offered(result: Result) -> metrics.Statistic:
    """Measure the load that the flows really offered after the warm-up: heavy tails scatter it."""
    scenario = result.summary["scenario"]
    span = metrics.seconds(scenario["time_limit"]) - metrics.seconds(scenario["warm_up"])
    sizes = metrics.judged(result)["size_bytes"]
    bits = 8 * PACKET * float((sizes / PAYLOAD).ceil().sum())
    return metrics.Statistic(bits / span / result.summary["load_reference"]["rate_bps"])


def at_sizes(
    table: pl.DataFrame, scheme: str, up_to: float = float("inf"), above: float = 0
) -> pl.DataFrame:
    """Return the bins of a scheme that have enough flows to be judged, within bounds of size."""
    return table.filter(
        pl.col("metric") == BY_SIZE,
        pl.col("scheme") == scheme,
        pl.col("flows") >= LEAST_FLOWS * pl.col("runs"),
        pl.col("size_hi") <= up_to,
        pl.col("size_lo") >= above,
    )


def ratios(
    table: pl.DataFrame, one: str, other: str, up_to: float = float("inf"), above: float = 0
) -> pl.DataFrame:
    """Return how much longer flows take under `one` than under `other`, by size, and its error."""
    upper, lower = (at_sizes(table, scheme, up_to, above) for scheme in (one, other))
    joined = upper.join(lower, on="size_lo", suffix="_other", maintain_order="left")
    ratio = pl.col("mean") / pl.col("mean_other")
    own, others = (pl.col(f"stderr{suffix}") / pl.col(f"mean{suffix}") for suffix in ("", "_other"))
    return joined.select("size", ratio=ratio, error=ratio * (own**2 + others**2).sqrt())


def settled(table: pl.DataFrame, scheme: str, metric: str) -> pl.DataFrame:
    """Return a quantity over time without the first tenth of the run, the warm-up."""
    rows = table.filter(scheme=scheme, metric=metric)
    return rows.filter(pl.col("time_s") >= pl.col("time_s").max() / 10)


def first_seed(table: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return a quantity over time in the first of the seeds, to be drawn."""
    return table.filter(pl.col("metric") == metric, pl.col("seed") == table["seed"].min())


def mean_of(table: pl.DataFrame, scheme: str, metric: str) -> float:
    """Return the mean over time of a quantity of a scheme; NaN without samples."""
    mean: Any = settled(table, scheme, metric)["value"].mean()
    return float("nan") if mean is None else float(mean)
