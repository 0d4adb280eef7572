"""Comparison of a scenario's flows in Sojourn with the same flows over the TCP of the kernel.

The kernel's flows cross a link that the program `relay` emulates in real time. The comparison is
therefore limited to one bottleneck of moderate rate with a drop-tail queue, and to the kernel's
TCP; a scenario with other components is an error.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn._core import ScenarioError
from sojourn.base.units import parse_quantity, parse_time
from sojourn.runs.result_tables import flow_table
from sojourn.runs.results import Result
from sojourn.runs.runner import run
from sojourn.scenario.encoding import check, trace
from sojourn.scenario.fields import parts_of
from sojourn.scenario.reading import Scenario
from sojourn.validate import relay

CONGESTION_CONTROLS = {"tcp": "reno", "cubic": "cubic", "bbr": "bbr"}
"""Names of transports in the kernel."""

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

MAX_RATE_BPS, MAX_DURATION_S, MAX_FLOWS = 100e6, 600.0, 4000
"""Maximum rate, duration and number of flows, because the relay runs in real time."""

MIN_ACCESS_FACTOR = 10
"""Minimum ratio of access to bottleneck rate, because the kernel's access links have no rate."""

MAX_LATE_S, MAX_LATE_SHARE = 0.02, 0.01
"""Limits of a valid run: lateness of a packet, and share of packets later than a millisecond."""

FREE_FIELDS = (
    *("name", "environment", "seed", "time_limit", "warm_up", "workload", "queue", "host_queue"),
    *("samples", "account", "account_flows", "record", "engine"),
)
"""Fields that a scenario may set, with further checks; the kernel determines all others."""

TOPOLOGY_FIELDS = (
    "kind",
    "senders",
    "receivers",
    "rate",
    "delay",
    "bottleneck_rate",
    "bottleneck_delay",
)
"""Fields of a topology that a scenario may set."""

NO_LIMIT = {"kind": "drop_tail", "capacity": "none"}

CALL_WORKLOADS = ("rpc", "storage")
"""Workloads whose flows depend on the completion of other flows."""


@dataclass(frozen=True)
class Attempt:
    """Outcome of one run of the relay."""

    outcome: Mapping[str, Any]

    @property
    def packets(self) -> int:
        """Number of packets on the forward and the reverse path."""
        return int(self._sum("packets"))

    @property
    def late_s(self) -> float:
        """Mean lateness of packets in seconds."""
        return self._sum("late_s") / max(self.packets, 1)

    @property
    def late_share(self) -> float:
        """Share of packets that left more than a millisecond late."""
        return self._sum("late_packets") / max(self.packets, 1)

    @property
    def worst_s(self) -> float:
        """Maximum lateness of a packet in seconds."""
        return max(float(path["worst_s"]) for path in self._paths)

    @property
    def counts(self) -> bool:
        """True if the lateness of the relay was within the limits of a valid run."""
        return self.worst_s <= MAX_LATE_S and self.late_share < MAX_LATE_SHARE

    @property
    def _paths(self) -> Sequence[Mapping[str, Any]]:
        return self.outcome["there"], self.outcome["back"]

    def _sum(self, name: str) -> float:
        return float(sum(path[name] for path in self._paths))


@dataclass(frozen=True)
class Measured:
    """The same flows in Sojourn and over the kernel's TCP."""

    simulated: Result
    """Result of Sojourn."""
    kernel: Result
    """The same result with the kernel's completion times."""
    done: pl.DataFrame
    """Table by `flow` of the kernel's completion times, `fct_kernel_s`, and the lateness of starts,
    `late_kernel_s`; null if the flow did not finish or did not start."""
    attempts: Sequence[Attempt]
    """All runs over the kernel's TCP; those before the last were invalid."""
    attempt: Attempt
    """The reported run: the last if it is valid, otherwise the run with the fewest late packets."""


def measure(scenario: Mapping[str, Any], *, repeats: int = 3, what: str = "real") -> Measured:
    """Run a scenario in Sojourn and over the kernel's TCP, until a run is valid.

    `repeats` is the maximum number of runs over the kernel's TCP, and `what` the title of the
    progress display. Raises `ScenarioError` for a field that the kernel or the relay does not
    support, or if this machine lacks a prerequisite.
    """
    relay_job = job(scenario)
    _check_machine(relay_job["congestion"])
    program = relay.program()
    simulated = run(scenario)
    attempts: list[Attempt] = []
    while len(attempts) < repeats and not (attempts and attempts[-1].counts):
        title = what if not attempts else f"{what}, retrying because the relay was late"
        attempts.append(Attempt(relay.run(program, relay_job, title)))
    best = min(attempts, key=lambda item: (not item.counts, item.late_share, item.worst_s))
    done = pl.DataFrame(best.outcome["flows"], {"late_s": pl.Float64, "fct_s": pl.Float64})
    done = done.select(
        _flows(scenario, relay_job["limit_s"])["flow"], fct_kernel_s="fct_s", late_kernel_s="late_s"
    )
    return Measured(simulated, _with_kernel_times(simulated, done), done, attempts, best)


def _with_kernel_times(simulated: Result, done: pl.DataFrame) -> Result:
    """Return a result with the kernel's completion times, and null for unknown columns."""
    unknown = (
        "retransmits",
        "timeouts",
        "delivered_bytes",
        "acked_s",
        "latency_s",
        "lost_packets",
    )
    flows = simulated.flows.join(done, on="flow", how="left", maintain_order="left").with_columns(
        *(pl.lit(None, simulated.flows.schema[name]).alias(name) for name in unknown),
        fct_s="fct_kernel_s",
        slowdown=pl.col("fct_kernel_s") / pl.col("ideal_fct_s"),
        outcome=pl.when(pl.col("fct_kernel_s").is_null())
        .then(pl.lit("unfinished"))
        .otherwise(pl.lit("finished")),
    )
    return simulated.with_flows(flows.select(simulated.flows.columns))


def job(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job of the relay; raise `ScenarioError` for fields that it does not support."""
    complete = check(scenario)
    _check_fields(complete)
    link, limit_s = _link(complete), parse_time(complete["time_limit"])
    if limit_s > MAX_DURATION_S:
        raise ScenarioError(
            f"time_limit: must be at most {MAX_DURATION_S:g} s, because the relay runs in real time"
        )
    flows = _flows(scenario, limit_s)
    _check_flows(flows, int(complete["topology"].get("senders", 1)))
    packet = complete["packet"]
    return {
        "link": link,
        "mtu": round(parse_quantity(packet["payload"]) + parse_quantity(packet["header"])),
        "congestion": CONGESTION_CONTROLS[complete["transport"]["kind"]],
        "limit_s": limit_s,
        "flows": flows.select("start_s", "size_bytes").to_dicts(),
    }


def _flows(scenario: Mapping[str, Any], limit_s: float) -> pl.DataFrame:
    """Return the flows that start before the time limit, in order of their numbers."""
    return flow_table(trace(scenario)).filter(pl.col("start_s") < limit_s)


def _check_fields(complete: Scenario) -> None:
    """Raise `ScenarioError` for fields that the kernel's TCP or the relay does not support."""
    if complete["host"]["kernel"] != "linux":
        raise ScenarioError('host.kernel: must be "linux", the model of the kernel of this machine')
    kind = complete["transport"]["kind"] if complete["transport"] != "none" else "none"
    if kind not in CONGESTION_CONTROLS:
        raise ScenarioError(f"transport: must be one of {', '.join(CONGESTION_CONTROLS)}")
    if complete["topology"]["kind"] not in ("link", "dumbbell"):
        raise ScenarioError("topology: must be link or dumbbell, because the relay is one link")
    queue = complete["queue"]
    is_drop_tail = queue != "none" and queue["kind"] == "drop_tail"
    if not is_drop_tail or not re.fullmatch(r"\d+ packets", queue["capacity"]):
        form = '{ kind = "drop_tail", capacity = "67 packets" }'
        raise ScenarioError(f"queue: must be drop-tail with a capacity in packets, such as {form}")
    if complete["topology"]["kind"] == "dumbbell" and complete["host_queue"] != NO_LIMIT:
        form = '{ kind = "drop_tail", capacity = "none" }'
        raise ScenarioError(
            f"host_queue: must be {form}, because the kernel's hosts do not drop packets"
        )
    for workload in parts_of(complete["workload"]):
        if workload["kind"] in CALL_WORKLOADS:
            raise ScenarioError(
                "workload: must not contain calls, because the relay needs all flows in advance"
            )
    topology = {
        name: complete["topology"][name] for name in TOPOLOGY_FIELDS if name in complete["topology"]
    }
    fields = {name: complete[name] for name in FREE_FIELDS}
    fields |= {"topology": topology, "transport": kind, "host": {"kernel": "linux"}}
    supported = check({name: value for name, value in fields.items() if value != "none"})
    for path, value in _differences(complete, supported):
        allowed = json.dumps(value)
        raise ScenarioError(
            f"{path}: must be {allowed}: the kernel or the relay has no other value"
        )


def _differences(first: Any, second: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths at which two tables differ, with the values of the second table."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for name, value in first.items():
            yield from _differences(value, second[name], f"{path}.{name}" if path else name)
    elif first != second:
        yield path, second


def _link(complete: Scenario) -> dict[str, Any]:
    topology = complete["topology"]
    rate_bps, delay_s = parse_quantity(topology["rate"]), parse_time(topology["delay"])
    field = "rate"
    if topology["kind"] == "dumbbell":
        access_bps, access_s, field = rate_bps, delay_s, "bottleneck_rate"
        if topology["bottleneck_rate"] != "none":
            rate_bps = parse_quantity(topology["bottleneck_rate"])
        if topology["bottleneck_delay"] != "none":
            delay_s = parse_time(topology["bottleneck_delay"])
        delay_s += 2 * access_s
        if access_bps < MIN_ACCESS_FACTOR * rate_bps:
            raise ScenarioError(
                f"topology.rate: must be at least {MIN_ACCESS_FACTOR} times the bottleneck's,"
                " because the kernel's access links have no rate"
            )
    if rate_bps > MAX_RATE_BPS:
        maximum = f"{MAX_RATE_BPS / 1e6:g} Mbps"
        raise ScenarioError(
            f"topology.{field}: must be at most {maximum}, because the relay runs in real time"
        )
    capacity = round(parse_quantity(complete["queue"]["capacity"]))
    return {"rate_bps": round(rate_bps), "delay_s": delay_s, "capacity_packets": capacity}


def _check_flows(flows: pl.DataFrame, senders: int) -> None:
    if not 1 <= flows.height <= MAX_FLOWS:
        raise ScenarioError(f"workload: must have 1 to {MAX_FLOWS} flows, not {flows.height}")
    if (flows["outcome"] == "long_lived").any():
        raise ScenarioError("workload: long-lived flows have no completion times to compare")
    if not flows.select(
        ((pl.col("source") < senders) & (pl.col("target") >= senders)).all()
    ).item():
        raise ScenarioError("workload: all flows must be from left to right")


def _check_machine(congestion: str) -> None:
    try:
        available = AVAILABLE.read_text(encoding="utf-8").split()
    except OSError:
        raise ScenarioError(f"needs Linux: {AVAILABLE} does not exist") from None
    if congestion not in available:
        raise ScenarioError(
            f"transport: this kernel does not support `{congestion}` ({', '.join(available)})"
        )
