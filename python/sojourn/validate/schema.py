"""Schema of a folder of cases: keys and columns of its files."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    model_validator,
)

from sojourn.scenario.typed import TEXT, Column

TOTALS = (
    "flows",
    "unfinished",
    "mean",
    "median",
    "p99",
    "active_flows",
    "utilisation",
    "queue_packets",
    "drop_rate",
    "retransmit_rate",
    "retransmits",
    "timeouts",
    "pauses",
)
"""Totals of a run, with the names of columns in `totals.csv`."""

BINS = ("low", "high", "flows", "unfinished", "mean", "stderr", "median", "p95", "p99")
"""Columns of a bin: the flows of size, or number, from `low` to `high`."""


def _ascending(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] >= pair[1]:
        raise ValueError("the first must be less than the second")
    return pair


Seconds = Annotated[float, Field(ge=0, le=1e9)]
Bytes = Annotated[int, Field(ge=1, le=1_000_000_000)]
Share = Annotated[float, Field(gt=0)]
Period = Annotated[tuple[Seconds, Seconds], Strict(False), AfterValidator(_ascending)]
Group = Annotated[tuple[int, int], Strict(False)]
Within = Annotated[
    Annotated[Share, Tag("everywhere")]
    | Annotated[dict[Literal["mean", "p95", "p99"], dict[str, Share]], Tag("by statistic")],
    Discriminator(lambda value: "by statistic" if isinstance(value, dict) else "everywhere"),
]


class Settings(BaseModel):
    """Settings of a run, from its table, the table of its case, or the file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    title: str
    """Title of the case in tables."""
    label: str
    """Name of the run in tables."""
    measured_s: Period
    """Period of the arrivals of measured flows."""
    end_s: Annotated[float, Field(gt=0, le=1e9)]
    """End of the run."""
    payload_bytes: Bytes
    wire_bytes: Bytes
    """Size of a packet without headers, and with headers."""
    ack_bytes: Bytes = 40
    """Size of an ACK."""
    scenario: dict[str, Any]
    repeats: list[dict[str, Any]] = [{}]
    """Changes of each repeat; results are means over repeats."""
    link: str | None = None
    """Link whose queue and utilisation are compared; `None` compares totals of the network."""
    by: Literal["size", "flow", "group"] = "size"
    """Bins: ranges of sizes, single flows, or named groups of sizes."""
    groups: dict[str, Group] = {}
    """Names of bins."""
    within: Within | None = None
    """Allowed relative difference from the reference; `None` is not judged."""
    share_within: Share | None = None
    """Allowed difference of a flow's share from the reference; 0.15 is 15 percentage points."""
    ports: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    """Links of each group of ports whose queues are compared."""
    queue_within: Share | None = None
    """Allowed relative difference of the mean queue of a group; `None` is not judged."""
    factor: dict[Literal["timeouts", "retransmits", "pauses"], Annotated[float, Field(ge=1)]] = {}
    """Allowed factor from the reference; counts below one count as one."""
    adds_s: Seconds = 0.0
    """Time added to simulated completion times."""
    ack_s: Seconds = 0.0
    """Time added to the duration in which a flow is active."""
    until: Literal["received", "acked"] = "received"
    """End of completion times: at the receiver, or after the last ACK at the sender."""
    over: Literal["second", "alone"] = "second"
    """Unit of completion times: seconds, or multiples of the ideal FCT."""
    p99: Literal["nearest", "higher", "lower", "midpoint", "linear"] = "higher"
    """Interpolation of percentiles between two flows."""
    least_flows: Annotated[int, Field(ge=1)] = 100
    """Minimum number of flows in a judged bin."""
    sample_interval: str = "10 ms"

    @model_validator(mode="after")
    def _check_constraints(self) -> "Settings":
        """Check constraints between keys."""
        if self.measured_s[1] > self.end_s:
            raise ValueError(f"`measured_s` must end no later than `end_s` = {self.end_s:g}")
        if not self.repeats:
            raise ValueError("`repeats` must be one or more tables")
        if self.wire_bytes < self.payload_bytes:
            raise ValueError("`wire_bytes` must be no less than `payload_bytes`")
        return self


class Quick(BaseModel):
    """Settings of a short run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    measured_s: Period | None = None
    end_s: float | None = None


class RunTable(BaseModel):
    """Table of a run, without its settings."""

    model_config = ConfigDict(extra="allow", strict=True)

    scenario: dict[str, Any] = {}
    like: str | None = None


class CaseTable(BaseModel):
    """Table of a case, without the settings that its runs share."""

    model_config = ConfigDict(extra="allow", strict=True)

    scenario: dict[str, Any] = {}
    flows: str | None = None
    quick: Quick | None = None
    runs: Annotated[dict[str, RunTable], Field(min_length=1)]


class Ablation(BaseModel):
    """Removal of a mechanism from some runs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cases: Annotated[list[str], Field(min_length=1)]
    runs: Annotated[list[str], Field(min_length=1)]
    """Names of runs; a case may lack some of them."""
    scenario: Annotated[dict[str, Any], Field(min_length=1)]
    """Changes to the scenarios of the runs."""


class CasesFile(BaseModel):
    """`cases.toml`, without the settings that all runs share."""

    model_config = ConfigDict(extra="allow", strict=True)

    simulator: str
    scenario: dict[str, Any] = {}
    cases: Annotated[dict[str, CaseTable], Field(min_length=1)]
    ablations: dict[str, Ablation] = {}


COUNT = Column(is_integer=True)
TIME = Column(minimum=1e-12, can_be_empty=True)
NUMBER = Column(can_be_empty=True)

BINS_COLUMNS = {
    **dict.fromkeys(("case", "run"), TEXT),
    **dict.fromkeys(("low", "high", "flows", "unfinished"), COUNT),
    **{"mean": TIME, "stderr": NUMBER, "median": TIME, "p99": TIME},
    "p95": Column(minimum=1e-12, can_be_empty=True, is_required=False),
}
TOTALS_COLUMNS = {
    **dict.fromkeys(("case", "run"), TEXT),
    **dict.fromkeys(TOTALS, Column(can_be_empty=True, is_required=False)),
}
FLOWS_COLUMNS = {
    "start_us": Column(),
    "packets": Column(1, 1e9, is_integer=True, is_required=False),
    "bytes": Column(1, 1e15, is_integer=True, is_required=False),
    **dict.fromkeys(("source", "target"), Column(0, 1e9, is_integer=True, is_required=False)),
    "alone_us": Column(1e-6, is_required=False),
    "after": Column(is_text=True, can_be_empty=True, is_required=False),
    "after_count": Column(1, 1e9, is_integer=True, can_be_empty=True, is_required=False),
}
"""Columns of the Parquet file, without the reference's completion times by run."""
