"""Fidelity of an answer: the field `fidelity` of a scenario.

`packets` simulates every packet of the network, `sample` those of a part that stands for the whole;
`flows` simulates the whole network as a fluid, and learns from samples how packets differ from it.
`auto` is one of these, chosen by the cost of the packets and by what the network allows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sojourn._core import ScenarioError
from sojourn.base.messages import did_you_mean

FIELD = "fidelity"

RECORDS = "flows_per_record"
"""Field of a scenario: number of flows for each record that is kept."""

PACKETS, SAMPLE, FLOWS, AUTO = "packets", "sample", "flows", "auto"
KINDS = (PACKETS, SAMPLE, FLOWS, AUTO)

FIELDS: dict[str, tuple[str, ...]] = {
    PACKETS: (),
    SAMPLE: ("hosts", "samples", "check", "precision", "max_samples"),
    FLOWS: ("hosts", "samples"),
    AUTO: ("hosts", "samples", "check"),
}
"""Parameters of each kind."""

MAX_SAMPLES = 100

LEAST_FOR_CHECK = 2
"""Samples from which the law of some can be compared with another."""


@dataclass(frozen=True)
class Fidelity:
    """Method by which a scenario is answered."""

    kind: str = PACKETS
    hosts: int = 256
    """Hosts of each folded network, about."""
    samples: int = 2
    """Number of folded networks, with different seeds; with a `precision`, of the first round."""
    check: bool | str = AUTO
    """True if networks of half the size show how the answer depends on the size."""
    precision: float | str = "none"
    """Relative half width of the intervals of p99s from which no samples are added."""
    max_samples: int = 32
    """Number of samples up to which a `precision` adds some."""

    def as_table(self) -> dict[str, Any]:
        """Return the table of a scenario, with the parameters of its kind."""
        return {"kind": self.kind} | {name: getattr(self, name) for name in FIELDS[self.kind]}


def read(value: Any) -> Fidelity:
    """Return the fidelity that a scenario names; raise `ScenarioError` if it is invalid."""
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping) or "kind" not in table:
        raise ScenarioError(f"{FIELD}: must be one of {', '.join(KINDS)}, or a table with a `kind`")
    kind = table["kind"]
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS)
        raise ScenarioError(f"{FIELD}.kind: expected one of {', '.join(KINDS)}, not {kind}{hint}")
    names = ("kind", *FIELDS[kind])
    for name in table:
        if name not in names:
            hint = did_you_mean(str(name), names)
            allowed = ", ".join(names)
            raise ScenarioError(f"{FIELD}.{name}: unknown field; {kind} has {allowed}{hint}")
    for name, most in (("hosts", 1 << 20), ("samples", MAX_SAMPLES), ("max_samples", MAX_SAMPLES)):
        number = table.get(name, 2)
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            raise ScenarioError(f"{FIELD}.{name}: must be a whole number from 1 to {most}")
    check = table.get("check", AUTO)
    if not isinstance(check, bool) and check != AUTO:
        raise ScenarioError(f"{FIELD}.check: must be true, false or {AUTO}")
    try:
        precision = share(table.get("precision", "none"))
    except ScenarioError as error:
        raise ScenarioError(f"{FIELD}.precision: {error}") from None
    chosen = Fidelity(**{**table, "precision": precision})
    if chosen.precision != "none" and chosen.samples > chosen.max_samples:
        raise ScenarioError(
            f"{FIELD}.samples: {chosen.samples} are more than max_samples, {chosen.max_samples}"
        )
    if chosen.kind == FLOWS and chosen.samples < LEAST_FOR_CHECK:
        raise ScenarioError(
            f"{FIELD}.samples: flows needs {LEAST_FOR_CHECK} or more, as one sample checks another"
        )
    return chosen


def with_kind(scenario: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a scenario with another kind of fidelity and the parameters that both kinds have.

    Raises `ScenarioError` if the fidelity of the scenario or the kind is invalid.
    """
    given = read(scenario.get(FIELD, PACKETS)).as_table()
    table = {name: given[name] for name in FIELDS[read(kind).kind] if name in given}
    return {**scenario, FIELD: {"kind": kind, **table}}


def refuse_flows(scenario: Mapping[str, Any], remedy: str) -> None:
    """Raise `ScenarioError` with a remedy if the fidelity of a scenario is `flows`.

    It is for commands that need packets, whose fields of a scenario they set themselves.
    """
    if read(scenario.get(FIELD, PACKETS)).kind == FLOWS:
        raise ScenarioError(f"{FIELD}: `{FLOWS}` predicts completion times only; {remedy}")


def share(value: Any) -> float | str:
    """Return a precision such as `5%` as a share of one, and `none` as it is.

    Raises `ScenarioError`, without the name of the field, if it is neither.
    """
    if value == "none":
        return "none"
    text = re.fullmatch(r"(\d+\.?\d*|\.\d+) *%", value.strip()) if isinstance(value, str) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(text[1]) / 100 if text else float(value) if is_number else 0.0
    if not 0 < number < 1:
        raise ScenarioError(
            f"must be a percentage above 0 % and below 100 %, such as 5%, not {value}"
        )
    return number


CHECKED_HOSTS = 10_000
"""Hosts from which networks of half the size are simulated by default."""

ABOUT = {
    "kind": "How the scenario is answered: `packets` simulates the whole network, `sample` a part "
    "of it (leaf_spine, clos, fat_tree) that stands for the whole, and `flows` the whole as a "
    "fluid, corrected by samples. `auto` is the first of the three that fits the memory, takes "
    "less than ten minutes (`packets`) and suits the network, the same for all compared schemes.",
    "hosts": "Hosts of each folded network, about.",
    "samples": "Number of folded networks, with different seeds; with a `precision`, at first.",
    "check": "If true, `sample` also simulates networks of half the size and shows the difference; "
    f"`{AUTO}` does from {CHECKED_HOSTS} hosts on.",
    "precision": "Relative half width of the 95 % intervals of the p99 slowdowns by size, such as "
    "`5%`, up to which `sample` adds samples in rounds; `none` for `samples` of them.",
    "max_samples": "Number of samples up to which a `precision` adds some.",
}
"""Descriptions of the fields."""


def _whole_number(name: str, **bounds: int) -> dict[str, Any]:
    default = getattr(Fidelity, name)
    number = {"type": "integer", "minimum": 1, **bounds, "default": default}
    return {"description": ABOUT[name], **number}


SCHEMA: dict[str, Any] = {
    "description": ABOUT["kind"],
    "default": PACKETS,
    "anyOf": [
        {"enum": list(KINDS)},
        {
            "type": "object",
            "properties": {
                "kind": {"enum": list(KINDS)},
                "hosts": _whole_number("hosts"),
                "samples": _whole_number("samples", maximum=MAX_SAMPLES),
                "check": {
                    "description": ABOUT["check"],
                    **{"enum": [True, False, AUTO], "default": Fidelity.check},
                },
                "precision": {
                    "description": ABOUT["precision"],
                    **{"type": ["string", "number"], "default": Fidelity.precision},
                },
                "max_samples": _whole_number("max_samples", maximum=MAX_SAMPLES),
            },
            "required": ["kind"],
            "additionalProperties": False,
        },
    ],
}
"""JSON schema of the field."""


def parameters() -> list[dict[str, Any]]:
    """Return the entries of the field in the catalogue of parts."""
    allowed = {
        "kind": f"one of {', '.join(KINDS)}",
        "check": f"true, false or {AUTO}",
        "precision": "a percentage or none",
    }
    return [
        {
            "name": FIELD if name == "kind" else f"{FIELD}.{name}",
            "allowed": allowed.get(name, "a whole number"),
            "bounds": None,
            "default": getattr(Fidelity, name),
            "about": about,
        }
        for name, about in ABOUT.items()
    ]
