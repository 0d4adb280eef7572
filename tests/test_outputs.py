"""Page of output files: every column of every file has a row."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from sojourn import _core, cli
from sojourn.base import paths

PAGE = (paths.checkout() or Path()) / "docs" / "outputs.md"

CALLS = """
time_limit = "20 ms"
account = true
account_flows = [2]
transport = "dctcp"
topology = { kind = "star", hosts = 4, rate = "1 Gbps" }
record = { share = 1.0, hops = ["host0->switch"] }
samples = { interval = "1 ms", rtts = true, rtt_flows = [0], flows = [0] }
[workload]
kind = "mixed"
[[workload.parts]]
kind = "rpc"
request = { kind = "fixed", size = "1 KB" }
response = { kind = "fixed", size = "20 KB" }
pattern = { load = 0.2, calls = 30 }
[[workload.parts]]
kind = "poisson"
load = 0.2
flows = 20
deadlines = { mean = "1 ms" }
sizes = { kind = "fixed", size = "20 KB" }
"""


def documented() -> dict[str, list[str]]:
    """Return the first cells of the tables of the page by their headings."""
    sections = re.split(r"^##+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    rows = {part.splitlines()[0]: re.findall(r"^\| `(.+?)` \|", part, re.M) for part in sections}
    return {heading: names for heading, names in rows.items() if names}


def is_documented(name: str, names: list[str]) -> bool:
    """Return true if a name is in a list, or has one of its forms such as `REASON_PLACE_ps`."""
    form = re.escape(name)
    patterns = (
        re.sub(r"[A-Z]{4,}", ".+", known) for known in names if re.search("[A-Z]{4}", known)
    )
    return name in names or any(
        re.fullmatch(pattern, form.replace("\\", "")) for pattern in patterns
    )


@pytest.fixture
def outputs(scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("calls.toml").write_text(CALLS, encoding="utf-8")
    vary = ["--vary", "transport=dctcp,swift"]
    for command in (
        ["run", "calls.toml", "--out", "run"],
        ["compare", "calls.toml", *vary, "--account", "--flows", "--out", "compare"],
        ["explain", "calls.toml", *vary, "--alone", "--out", "explain"],
        ["explain", "calls.toml", "--flow", "2", "--out", "chain"],
        ["trace", str(scenario_file), "--out", "trace.csv"],
    ):
        assert cli.invoke(command) == 0, command
    return tmp_path


FILES = {
    "run/flows.parquet": "flows.parquet",
    "run/samples.parquet": "samples.parquet",
    "run/links.parquet": "links.parquet",
    "run/account.parquet": "account.parquet",
    "run/chain.parquet": "chain.parquet",
    "run/packets.parquet": "packets.parquet",
    "run/gauges.parquet": "gauges.parquet",
    "run/series.parquet": "series.parquet",
    "run/hops.parquet": "hops.parquet",
    "compare/comparison.csv": "comparison.csv",
    "compare/pairs.csv": "pairs.csv",
    "compare/differences.csv": "differences.csv",
    "compare/index.csv": "index.csv",
    "explain/account.csv": "account.csv",
    "explain/differences.csv": "differences.csv",
    "explain/calls.csv": "calls.csv",
    "explain/unloaded.csv": "unloaded.csv",
    "chain/chain.csv": "chain.csv",
    "trace.csv": "`sojourn trace --out FILE`",
}


def test_every_column_of_every_file_is_documented(outputs: Path) -> None:
    pages = documented()
    for file, heading in FILES.items():
        path = outputs / file
        read = pl.read_parquet if path.suffix == ".parquet" else pl.read_csv
        columns = [name for name in read(path).columns if name != "transport"]
        assert [name for name in columns if not is_documented(name, pages[heading])] == [], file
        fixed = [name for name in pages[heading] if not re.search("[A-Z]{4}", name)]
        assert [name for name in fixed if name not in columns] == [], file
    flows = pl.read_parquet(outputs / "compare/flows.parquet").columns
    assert flows == ["transport", "seed", *pages["flows.parquet"]]
    summary = json.loads((outputs / "run/summary.json").read_text(encoding="utf-8"))
    assert set(summary) == set(pages["summary.json"])
    assert set(summary["counts"]) <= set(re.findall(r"\w+", PAGE.read_text(encoding="utf-8")))


def test_the_columns_of_flows_are_those_of_the_core() -> None:
    assert documented()["flows.parquet"] == [name for name, _, _ in _core.flow_columns()]


def test_every_output_of_a_comparison_has_a_section(outputs: Path) -> None:
    tables = {file.name for file in outputs.glob("*/*") if file.suffix in (".csv", ".parquet")}
    assert tables <= set(documented())
