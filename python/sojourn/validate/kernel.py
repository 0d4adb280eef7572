"""A scenario's flows over the TCP of this machine's kernel, beside the same flows here.

The kernel's flows cross a link that a program of its own computes (`relay`), in real time. So what
can be run is one bottleneck of a moderate rate with a queue that drops at its tail, and TCP as the
kernel has it; everything else is refused.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.units import parse_quantity, parse_time
from sojourn.runs.results import Result, flow_table
from sojourn.runs.runner import run
from sojourn.scenario.encoding import check, trace
from sojourn.scenario.reading import Scenario
from sojourn.validate import relay

CONGESTION_CONTROLS = {"tcp": "reno", "cubic": "cubic", "bbr": "bbr"}
"""What the kernel calls transports."""

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

MOST_BPS, MOST_S, MOST_FLOWS = 100e6, 600.0, 4000
"""The largest rate, the longest run and the most flows: it runs in real time, on one machine."""

LEAST_ACCESS = 10
"""How many times as fast as the bottleneck access links are at least: the kernel's have no rate."""

WORST_S, LATE_SHARE = 0.02, 0.01
"""In a run that counts: how late a packet may be, and how many by more than a millisecond."""

FREE = (
    *("name", "seed", "time_limit", "warm_up", "workload", "queue", "host_queue"),
    *("samples", "account", "account_flows", "engine"),
)
"""What a scenario may say as it likes, if only after a look at it; all else is the kernel's."""

SHAPE = ("kind", "senders", "receivers", "rate", "delay", "bottleneck_rate", "bottleneck_delay")
"""The same of a topology."""

NO_LIMIT = {"kind": "drop_tail", "capacity": "none"}

CALLS = ("rpc", "storage")
"""The workloads whose flows follow from each other."""


@dataclass(frozen=True)
class Attempt:
    """What the relay told of one run."""

    outcome: Mapping[str, Any]

    @property
    def packets(self) -> int:
        """Packets that it carried, there and back."""
        return int(self._sum("packets"))

    @property
    def late_s(self) -> float:
        """How late they left, on average, in seconds."""
        return self._sum("late_s") / max(self.packets, 1)

    @property
    def late_share(self) -> float:
        """Which share of them left more than a millisecond late."""
        return self._sum("late_packets") / max(self.packets, 1)

    @property
    def worst_s(self) -> float:
        """How late the worst one left, in seconds."""
        return max(float(way["worst_s"]) for way in self._ways)

    @property
    def counts(self) -> bool:
        """Whether the relay was in time, so that the run counts."""
        return self.worst_s <= WORST_S and self.late_share < LATE_SHARE

    @property
    def _ways(self) -> Sequence[Mapping[str, Any]]:
        return self.outcome["there"], self.outcome["back"]

    def _sum(self, name: str) -> float:
        return float(sum(way[name] for way in self._ways))


@dataclass(frozen=True)
class Measured:
    """The same flows here and over the kernel's TCP."""

    ours: Result
    kernel: Result
    """Ours with the kernel's completion times."""
    done: pl.DataFrame
    """By `flow` the kernel's completion times, and how late it was called: `fct_kernel_s` and
    `late_kernel_s`; null where a flow did not finish, or did not start."""
    attempts: Sequence[Attempt]
    """All runs over the kernel's TCP: those before the last did not count."""
    attempt: Attempt
    """The one that is shown: the last if it counts, else the one with fewest late packets."""


def measure(scenario: Mapping[str, Any], *, repeats: int = 3, what: str = "real") -> Measured:
    """Run a scenario here and over the kernel's TCP; that at most `repeats` times until one counts.

    Raises `ScenarioError` with the field that the kernel or the relay cannot follow, or with what
    this machine lacks.
    """
    wanted = job(scenario)
    _check_machine(wanted["congestion"])
    program = relay.program()
    ours = run(scenario)
    attempts: list[Attempt] = []
    while len(attempts) < repeats and not (attempts and attempts[-1].counts):
        told = what if not attempts else f"{what}, again, for the relay was late"
        attempts.append(Attempt(relay.run(program, wanted, told)))
    best = min(attempts, key=lambda one: (not one.counts, one.late_share, one.worst_s))
    done = pl.DataFrame(best.outcome["flows"], {"late_s": pl.Float64, "fct_s": pl.Float64})
    done = done.select(
        _flows(scenario, wanted["limit_s"])["flow"], fct_kernel_s="fct_s", late_kernel_s="late_s"
    )
    return Measured(ours, _with_times(ours, done), done, attempts, best)


def _with_times(ours: Result, done: pl.DataFrame) -> Result:
    """Return a result with the kernel's completion times, and without what is not known of it."""
    unknown = ("retransmits", "timeouts", "delivered_bytes", "acked_s", "latency_s")
    flows = ours.flows.join(done, on="flow", how="left", maintain_order="left").with_columns(
        *(pl.lit(None, ours.flows.schema[name]).alias(name) for name in unknown),
        fct_s="fct_kernel_s",
        slowdown=pl.col("fct_kernel_s") / pl.col("ideal_fct_s"),
        outcome=pl.when(pl.col("fct_kernel_s").is_null())
        .then(pl.lit("unfinished"))
        .otherwise(pl.lit("finished")),
    )
    return ours.with_flows(flows.select(ours.flows.columns))


def job(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the relay is to run, or refuse what it cannot."""
    given = check(scenario)
    _check_fields(given)
    link, limit_s = _link(given), parse_time(given["time_limit"])
    if limit_s > MOST_S:
        raise ScenarioError(f"time_limit: must be at most {MOST_S:g} s, for it runs in real time")
    flows = _flows(scenario, limit_s)
    _check_flows(flows, int(given["topology"].get("senders", 1)))
    packet = given["packet"]
    return {
        "link": link,
        "mtu": round(parse_quantity(packet["payload"]) + parse_quantity(packet["header"])),
        "congestion": CONGESTION_CONTROLS[given["transport"]["kind"]],
        "limit_s": limit_s,
        "flows": flows.select("start_s", "size_bytes").to_dicts(),
    }


def _flows(scenario: Mapping[str, Any], limit_s: float) -> pl.DataFrame:
    """Return the flows that start in time, which are numbered in that order."""
    return flow_table(trace(scenario)).filter(pl.col("start_s") < limit_s)


def _check_fields(given: Scenario) -> None:
    """Refuse what the kernel's TCP and the relay's link do not have."""
    if given["host"]["kernel"] != "linux":
        raise ScenarioError('host.kernel: must be "linux", whose TCP the flows are run over')
    kind = given["transport"]["kind"] if given["transport"] != "none" else "none"
    if kind not in CONGESTION_CONTROLS:
        raise ScenarioError(f"transport: must be one of {', '.join(CONGESTION_CONTROLS)}")
    if given["topology"]["kind"] not in ("link", "dumbbell"):
        raise ScenarioError("topology: must be link or dumbbell: the relay is one link")
    queue = given["queue"]
    if queue == "none" or queue["kind"] != "drop_tail" or "packet" not in queue["capacity"]:
        form = '{ kind = "drop_tail", capacity = "67 packets" }'
        raise ScenarioError(f"queue: must drop at its tail, and count packets, as {form}")
    if given["topology"]["kind"] == "dumbbell" and given["host_queue"] != NO_LIMIT:
        form = '{ kind = "drop_tail", capacity = "none" }'
        raise ScenarioError(f"host_queue: must be {form}: the kernel's hosts drop nothing")
    for workload in [given["workload"], *given["workload"].get("parts", [])]:
        if workload["kind"] in CALLS:
            raise ScenarioError("workload: must know its flows beforehand; calls follow each other")
    shape = {name: given["topology"][name] for name in SHAPE if name in given["topology"]}
    as_it_comes = {name: given[name] for name in FREE}
    as_it_comes |= {"topology": shape, "transport": kind, "host": {"kernel": "linux"}}
    plain = check({name: value for name, value in as_it_comes.items() if value != "none"})
    for path, value in _differences(given, plain):
        known = json.dumps(value)
        raise ScenarioError(f"{path}: must be {known}: neither kernel nor relay knows another")


def _differences(given: Any, plain: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Give the paths at which tables differ, and what stands there in the second."""
    if isinstance(given, dict) and isinstance(plain, dict) and given.keys() == plain.keys():
        for name, value in given.items():
            yield from _differences(value, plain[name], f"{path}.{name}" if path else name)
    elif given != plain:
        yield path, plain


def _link(given: Scenario) -> dict[str, Any]:
    topology = given["topology"]
    rate_bps, delay_s = parse_quantity(topology["rate"]), parse_time(topology["delay"])
    field = "rate"
    if topology["kind"] == "dumbbell":
        access_bps, access_s, field = rate_bps, delay_s, "bottleneck_rate"
        if topology["bottleneck_rate"] != "none":
            rate_bps = parse_quantity(topology["bottleneck_rate"])
        if topology["bottleneck_delay"] != "none":
            delay_s = parse_time(topology["bottleneck_delay"])
        delay_s += 2 * access_s
        if access_bps < LEAST_ACCESS * rate_bps:
            raise ScenarioError(
                f"topology.rate: must be at least {LEAST_ACCESS} times the bottleneck's, for the"
                " kernel's hosts have no rate"
            )
    if rate_bps > MOST_BPS:
        most = f"{MOST_BPS / 1e6:g} Mbps"
        raise ScenarioError(f"topology.{field}: must be at most {most}, for it runs in real time")
    capacity = round(parse_quantity(given["queue"]["capacity"]))
    return {"rate_bps": round(rate_bps), "delay_s": delay_s, "capacity_packets": capacity}


def _check_flows(flows: pl.DataFrame, senders: int) -> None:
    if not 1 <= flows.height <= MOST_FLOWS:
        raise ScenarioError(f"workload: must have 1 to {MOST_FLOWS} flows, not {flows.height}")
    if (flows["outcome"] == "long_lived").any():
        raise ScenarioError("workload: must have flows that end: completion times are compared")
    if not flows.select(
        ((pl.col("source") < senders) & (pl.col("target") >= senders)).all()
    ).item():
        raise ScenarioError("workload: must have flows from left to right alone")


def _check_machine(congestion: str) -> None:
    try:
        has = AVAILABLE.read_text(encoding="utf-8").split()
    except OSError:
        raise ScenarioError(f"needs Linux: there is no {AVAILABLE}") from None
    if congestion not in has:
        raise ScenarioError(f"transport: this kernel has no `{congestion}` ({', '.join(has)})")
