"""The form of a folder of cases: which keys and columns its files may have."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Strict, Tag
from pydantic import model_validator as checks

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
)
"""What is compared of a run as a whole, with the names of `totals.csv`."""

BINS = ("low", "high", "flows", "unfinished", "mean", "stderr", "median", "p95", "p99")
"""What is compared of the flows whose size (or number) is from `low` to `high`."""


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
    """What is said of a run: in its table, that of its case or that of the file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    title: str
    """What the case is, for people."""
    label: str
    """The name of what was run, for people."""
    measured_s: Period
    """From when to when the flows arrive that count."""
    end_s: Annotated[float, Field(gt=0, le=1e9)]
    """When the run ends."""
    payload_bytes: Bytes
    wire_bytes: Bytes
    """The size of a packet without and with its headers."""
    ack_bytes: Bytes = 40
    """The size of an ACK."""
    scenario: dict[str, Any]
    repeats: list[dict[str, Any]] = [{}]
    """What changes it each time that it is run; ours is the mean."""
    link: str | None = None
    """The link whose queue and utilisation are compared; without one, the network as a whole."""
    by: Literal["size", "flow", "group"] = "size"
    """Whether bins are of sizes, of single flows or of groups of sizes."""
    groups: dict[str, Group] = {}
    """The names of bins."""
    within: Within | None = None
    """Which share of the other's number ours may be apart; `None` is not judged."""
    share_within: Share | None = None
    """How far a flow's share of a period may be from that there: 0.15 are 15 points."""
    factor: dict[Literal["timeouts", "retransmits"], Annotated[float, Field(ge=1)]] = {}
    """Within which factor of the other's ours may be; fewer than one count as one."""
    adds_s: Seconds = 0.0
    """What is added to our completion times."""
    ack_s: Seconds = 0.0
    """What is added to the time that a flow is in progress."""
    until: Literal["received", "acked"] = "received"
    """Where completion times end."""
    over: Literal["second", "alone"] = "second"
    """In what they are measured."""
    p99: Literal["nearest", "higher", "lower", "midpoint", "linear"] = "higher"
    """How a percentile is found between two flows."""
    least_flows: Annotated[int, Field(ge=1)] = 100
    """How many flows a bin must have to be judged."""
    sample_interval: str = "10 ms"

    @checks(mode="after")
    def _agree(self) -> "Settings":
        """Compare what two keys say."""
        if self.measured_s[1] > self.end_s:
            raise ValueError(f"`measured_s` must end no later than `end_s` = {self.end_s:g}")
        if not self.repeats:
            raise ValueError("`repeats` must be one or more tables")
        if self.wire_bytes < self.payload_bytes:
            raise ValueError("`wire_bytes` must be no less than `payload_bytes`")
        return self


class Quick(BaseModel):
    """What a short run has instead."""

    model_config = ConfigDict(extra="forbid", strict=True)

    measured_s: Period | None = None
    end_s: float | None = None


class RunTable(BaseModel):
    """The table of a run, beside its settings."""

    model_config = ConfigDict(extra="allow", strict=True)

    scenario: dict[str, Any] = {}
    like: str | None = None


class CaseTable(BaseModel):
    """The table of a case, beside the settings that its runs share."""

    model_config = ConfigDict(extra="allow", strict=True)

    scenario: dict[str, Any] = {}
    flows: str | None = None
    quick: Quick | None = None
    runs: Annotated[dict[str, RunTable], Field(min_length=1)]


class Ablation(BaseModel):
    """What is taken out of some runs to see what it does."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cases: Annotated[list[str], Field(min_length=1)]
    runs: Annotated[list[str], Field(min_length=1)]
    """The names of the runs in these cases; not every case need have every one."""
    scenario: Annotated[dict[str, Any], Field(min_length=1)]
    """What is put on top of theirs."""


class CasesFile(BaseModel):
    """`cases.toml`, beside the settings that all runs share."""

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
}
"""The columns of the Parquet file, beside those of the other's completion times."""
