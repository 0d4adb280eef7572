"""Figures and the report."""

import html
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import EXPERIMENTS
from sojourn import ScenarioError, cli, plot
from sojourn.analysis.claims import Word
from sojourn.base import paths
from sojourn.figures import discovery, recorded
from sojourn.figures.documents import experiments_page
from sojourn.figures.figure import ClaimResult, FigureResult, PublishedPair
from sojourn.figures.html_report import read_results, write_report
from sojourn.figures.recorded import FigureRecord
from sojourn.figures.tables import label_text


@pytest.fixture(scope="module")
def smoke_figure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made") / "figures"
    discovery.discover(EXPERIMENTS)["t1"].make("smoke", directory)
    return directory


@pytest.fixture
def made(smoke_figure: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(smoke_figure, tmp_path / "figures"))


def test_figures_are_discovered_in_folders() -> None:
    figures = discovery.discover(EXPERIMENTS)
    assert list(figures) == ["t1"]
    assert figures["t1"].path == EXPERIMENTS / "tiny" / "t1.py"
    assert discovery.choose(figures, ["tiny"]) == discovery.choose(figures, ["all"])
    assert discovery.choose(figures, ["T1"]) == [figures["t1"]]
    capital = {"T1": replace(figures["t1"], id="T1")}
    assert discovery.choose(capital, ["t1"]) == discovery.choose(capital, ["T1"]) != []
    with pytest.raises(ScenarioError, match=r"tniy: unknown figure; did you mean `tiny`"):
        discovery.choose(figures, ["t1", "tniy"])


def test_a_figure_writes_picture_table_and_claims(made: Path) -> None:
    names = ["t1.csv", "t1.drawn.json", "t1.json", "t1.png", "t1.svg"]
    assert sorted(file.name for file in made.iterdir()) == names
    content = json.loads((made / "t1.json").read_text(encoding="utf-8"))
    assert [(claim["kind"], claim["verdict"]) for claim in content["claims"]] == [
        ("stated", "held"),
        ("stated", "not held"),
        ("own", "not judged"),
        ("check", "held"),
    ]
    interval = r"slowdown at load 0.8 over that at 0.2 is \S+ \(\S+ to \S+\), expected at least"
    assert re.search(interval, content["claims"][0]["numbers"])
    assert content["seeds"] == [1, 2]
    assert content["runs"] == 8
    assert (made / "t1.csv").read_text(encoding="utf-8").startswith("scheme,load,metric,value,low")


def test_a_figure_made_twice_gives_identical_files(made: Path, tmp_path: Path) -> None:
    discovery.discover(EXPERIMENTS)["t1"].make("smoke", tmp_path / "again")
    for name in ("t1.svg", "t1.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes()


def test_a_claim_is_not_judged_at_other_scales_than_its_own() -> None:
    figure = discovery.discover(EXPERIMENTS)["t1"]
    table = figure.published()
    assert table is not None
    verdicts = [claim.verdict for claim in figure.judge(table, "paper")]
    assert verdicts == ["not judged"] * 4


def test_every_figure_has_the_seeds_of_its_scale_or_a_reason_for_one() -> None:
    figure = discovery.discover(EXPERIMENTS)["t1"]

    figure.scales = {key: {"flows": 10, "loads": (0.2,)} for key in ("quick", "paper")}

    def seeds(scale: str) -> int:
        return len({labels["seed"] for labels, _ in figure.plan(scale)})

    assert (seeds("quick"), seeds("paper")) == (4, 10)
    figure.one_seed = "nothing in it is random"
    assert seeds("paper") == 1


RELAY = """
import time
from pathlib import Path

from sojourn import Figure, metrics, not_judged

from .paper import base, paper

figure = Figure(paper, id="NAME", title="Relay NAME", scales={"smoke": {}})


@figure.runs
def runs(scale):
    Path("started_NAME").touch()
    yield {"scheme": "DCTCP"}, BASE


@figure.table
def table(runs):
    return metrics.across_seeds(metrics.measure(runs, mean=metrics.slowdown("mean")))


@figure.draw
def draw(axes, table, published):
    until = time.monotonic() + 20
    while "NAME" == "r1" and not Path("started_r2").exists():
        assert time.monotonic() < until
        time.sleep(0.01)


@figure.claim("NAME occurs once", scales=("smoke",))
def once(table):
    return not_judged("the test counts")
"""


def relay(folder: Path, second_base: str) -> None:
    """Write two figures; the first waits in `draw` for the runs of the second."""
    shutil.copytree(EXPERIMENTS, folder / "experiments")
    (paper,) = (folder / "experiments").glob("*/paper.py")
    for name, base in (("r1", "base"), ("r2", second_base)):
        text = RELAY.replace("NAME", name).replace("BASE", base)
        (paper.parent / f"{name}.py").write_text(text, encoding="utf-8")
    (paper.parent / "t1.py").unlink()


def make_both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(folder)
    return cli.invoke(["figure", "tiny", "--scale", "smoke", "--out", "made"])


def test_a_figure_is_drawn_during_the_runs_of_the_next_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    relay(tmp_path, "base")
    assert make_both(tmp_path, monkeypatch) == 0
    printed = capsys.readouterr().out
    assert printed.index("r1   Relay r1") < printed.index("r2   Relay r2")


def test_a_drawn_figure_is_printed_even_if_the_next_figure_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    relay(tmp_path, 'base | {"transport": "dctpc"}')
    assert make_both(tmp_path, monkeypatch) == 2
    printed = capsys.readouterr()
    assert "r1   Relay r1" in printed.out
    assert "r2.py: transport: " in printed.err
    assert "did you mean `dctcp`?" in printed.err


def test_figures_named_twice_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    relay(tmp_path, "base")
    monkeypatch.chdir(tmp_path)
    command = ["figure", "r2", "tiny", "r1", "--scale", "smoke"]
    assert cli.invoke([*command, "--plan"]) == 0
    planned = capsys.readouterr().out
    assert re.findall(r"(?m)^ +(\w+) +\d", planned) == ["r2", "r1", "all"]
    assert cli.invoke(command) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"(?m)^(\w+) +Relay", printed) == ["r2", "r1"]
    assert "claims of the sources: 0 held, 0 not held, 2 not judged\n" in printed


def test_an_unknown_scale_is_an_error() -> None:
    with pytest.raises(ScenarioError, match=r"unknown scale `paper` \(allowed: smoke, quick\)"):
        discovery.discover(EXPERIMENTS)["t1"].plan("paper")


class References(HTMLParser):
    """Parser that collects links, ids and tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action") and value:
                self.links.append(value)
            if name == "id" and value:
                self.ids.append(value)


def test_the_report_needs_no_network(made: Path) -> None:
    text = write_report(made).read_text(encoding="utf-8")
    page = References()
    page.feed(text)
    # Links lead to ids of the page and to the figures' files.
    assert all(link.startswith("#") or (made / link).is_file() for link in page.links)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text
    assert not {"link", "iframe", "img"} & page.tags


def test_links_in_the_report_lead_to_unique_ids(made: Path) -> None:
    page = References()
    page.feed(write_report(made).read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids))
    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)


def test_the_report_contains_claims_numbers_and_commands(made: Path) -> None:
    text = write_report(made).read_text(encoding="utf-8")
    for expected in (
        "flows are slower at a higher load",
        "not held",
        "sojourn figure t1 --scale smoke",
        "A Tiny Study of Queues",
        "The network is smaller.",
        "Fewer flows than the source.",
    ):
        assert expected in text


@pytest.mark.parametrize("content", [None, '{"panels": [], "unknown": ["Wedge"]}'])
def test_the_report_shows_the_picture_of_a_figure_without_data(
    content: str | None, made: Path
) -> None:
    (made / "t1.drawn.json").unlink()
    if content:
        (made / "t1.drawn.json").write_text(content)
    page = write_report(made).read_text(encoding="utf-8")
    assert 'id="block-t1.svg"' in page
    assert 'id="block-t1.drawn"' not in page


def test_a_report_without_figures_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="contains no figures"):
        write_report(tmp_path)
    assert not list(tmp_path.glob("*.html"))


def truncate(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


Damage = Callable[[Path], Any]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda made: truncate(made / "t1.json"), "t1.json: not JSON"),
        (lambda made: truncate(made / "t1.svg"), "t1.svg: invalid SVG"),
        (lambda made: (made / "t1.json").write_bytes(b""), "t1.json: not JSON"),
        (
            lambda made: (made / "t1.json").write_bytes(b"\xff"),
            "t1.json: cannot be read: not UTF-8",
        ),
        (lambda made: (made / "t1.json").write_text("[]"), "t1.json: must be a table, not []"),
        (lambda made: (made / "t1.json").write_text("{}"), "t1.json: missing key `id`"),
        (lambda made: (made / "t1.json").write_text(9999 * "["), "t1.json: nested too deeply"),
        (lambda made: (made / "t1.json").write_text("1" * 9999), "t1.json: not JSON"),
        (lambda made: edit(made, "claims", [3]), "t1.json: claims.0: must be a table, not 3"),
        (lambda made: edit(made, "seeds", "x"), "t1.json: seeds: must be a list"),
        (lambda made: edit(made, "notse", []), "t1.json: notse: unknown key; did you mean `notes`"),
        (lambda made: edit(made, "id", "../t1"), "t1.json: contains the figure `../t1`"),
        (lambda made: (made / "t1.json").rename(made / "t2.json"), "t2.json: contains the figure"),
        (lambda made: (made / "t1.svg").unlink(), "t1.svg: cannot be read: No such file"),
        (lambda made: (made / "t1.svg").write_bytes(b""), "t1.svg: invalid SVG"),
        (lambda made: truncate(made / "t1.drawn.json"), "t1.drawn.json: not JSON"),
        (
            lambda made: (made / "t1.drawn.json").write_text('{"panels": [3], "unknown": []}'),
            "t1.drawn.json: panels.0: must be a table, not 3",
        ),
        (lambda made: (made / "t1.svg").write_text("<html/>"), "t1.svg: not an SVG"),
        (lambda made: (made / "t1.svg").write_bytes(b"\xff"), "t1.svg: cannot be read: not UTF-8"),
        (lambda made: pipe(made / "t1.json"), "t1.json: cannot be read: a pipe, not a file"),
    ],
)
def test_the_report_skips_an_incomplete_figure_with_a_one_line_warning(
    damage: Damage, expected: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(made / "t1.svg", made / "t0.svg")
    (made / "t0.json").write_text((made / "t1.json").read_text().replace('"t1"', '"t0"', 1))
    damage(made)
    assert cli.invoke(["report", "--figures", str(made)]) == 0
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert f"{made / expected}" in printed
    assert printed.endswith("; figure skipped\n")
    page = (made / "report.html").read_text(encoding="utf-8")
    assert 'id="t0"' in page
    assert 'id="t1"' not in page


def edit(made: Path, key: str, value: object) -> None:
    content = json.loads((made / "t1.json").read_text(encoding="utf-8"))
    (made / "t1.json").write_text(json.dumps(content | {key: value}), encoding="utf-8")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def test_unreadable_published_points_give_a_one_line_error(tmp_path: Path) -> None:
    figure = replace(discovery.discover(EXPERIMENTS)["t1"], path=tmp_path / "t1.py")
    for content in (b"", b"a,b\n1,2,3\n", b"\xff\xfe"):
        (tmp_path / "t1.csv").write_bytes(content)
        with pytest.raises(ScenarioError, match=r"t1\.csv: cannot be read: .+") as caught:
            figure.published()
        assert "\n" not in str(caught.value)


def test_whole_numbers_of_published_points_match_fractions_of_the_table(tmp_path: Path) -> None:
    figure = replace(discovery.discover(EXPERIMENTS)["t1"], path=tmp_path / "t1.py")
    table = pl.DataFrame({"scheme": ["a", "a"], "load": [1.0, 2.0], "value": [3.0, 4.0]})
    (tmp_path / "t1.csv").write_text("scheme,load,value\na,1,2.0\na,2,1.0\n", encoding="utf-8")
    pairs = figure.compare_published(table)
    assert [(pair.published, pair.ours) for pair in pairs] == [(2.0, 3.0), (1.0, 4.0)]
    (tmp_path / "t1.csv").write_text("scheme,load,value\na,low,2.0\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"^t1\.csv: labels unlike those of the table"):
        figure.compare_published(table)


def test_the_list_of_figures_contains_a_shared_deviation_once() -> None:
    (figure,) = discovery.discover(EXPERIMENTS).values()
    page = experiments_page({"t1": figure, "t2": replace(figure, id="t2")}, {})
    assert page.count("Deviation: Fewer flows than the source.") == 1
    assert page.count("Deviations: 1 shared with `t1`.") == 1


def test_the_list_of_figures_has_every_claim() -> None:
    claims = [ClaimResult("flows are never slow", "stated", "not held", "it is 2")]
    figures = discovery.discover(EXPERIMENTS)
    page = experiments_page(figures, {"t1": FigureRecord("paper", claims)})
    assert "| flows are slower at a higher load | not judged |  |" in page
    assert "| flows are never slow | not held | it is 2 |" in page
    assert "Verdicts at" not in page
    assert " 0 claims of the sources are those of figures recorded at `quick`" in page
    quick = experiments_page(figures, {"t1": FigureRecord("quick", claims)})
    assert "Verdicts at `quick` scale" in quick
    assert " 2 claims of the sources are those of figures recorded at `quick`" in quick


def test_claims_of_sources_own_claims_and_checks_are_counted_separately() -> None:
    words: tuple[Word, ...] = ("held", "held", "not held")
    stated, own, checks = (
        [ClaimResult("", "stated", word, "") for word in words],
        [ClaimResult("", "own", "not judged", "")],
        [ClaimResult("", "check", "held", "")],
    )
    assert recorded.tally_sentence([*own, *stated, *checks]) == (
        "claims of the sources: 2 held, 1 not held, 0 not judged;"
        " claims of our own: 0 held, 0 not held, 1 not judged;"
        " checks: 1 held, 0 not held, 0 not judged"
    )
    assert recorded.tally_sentence(own).startswith("claims of our own")


@pytest.mark.parametrize(
    ("label", "text"), [(0.1 + 0.2, "0.3"), (None, "-"), ("DCTCP", "DCTCP"), (10, "10")]
)
def test_labels_in_tables_are_short(label: object, text: str) -> None:
    assert label_text(label) == text


def test_recording_keeps_the_verdicts_of_other_figures(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "STATE_FILE", tmp_path / "state.json")
    held, other = ClaimResult("a", "stated", "held", "1"), ClaimResult("b", "own", "not held", "2")
    result, pairs = read_results(made)[0], [PublishedPair({"load": 0.2}, published=2.0, ours=3.0)]
    recorded.write_records([replace(result, id="t2", scale="paper", claims=[held], beside=pairs)])
    recorded.write_records([replace(result, id="t1", scale="quick", claims=[other])])
    assert recorded.read_records() == {
        "t1": FigureRecord("quick", [other], result.beside),
        "t2": FigureRecord("paper", [held], pairs),
    }


def test_the_report_shows_a_different_verdict_at_paper_scale(
    made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = FigureResult.read(made / "t1.json")
    claims = [replace(claim, verdict="not judged") for claim in result.claims]
    monkeypatch.setattr(recorded, "STATE_FILE", tmp_path / "state.json")
    recorded.write_records([replace(result, scale="paper", claims=claims)])
    page = write_report(made).read_text(encoding="utf-8")
    assert page.count("(at paper scale: not judged)") == sum(
        claim.verdict != "not judged" for claim in result.claims
    )
    recorded.write_records([replace(result, scale="paper")])
    assert "(at paper scale" not in write_report(made).read_text(encoding="utf-8")


def test_simulated_numbers_are_compared_with_published_numbers(made: Path) -> None:
    figure = discovery.discover(EXPERIMENTS)["t1"]
    result, published = FigureResult.read(made / "t1.json"), figure.published()
    assert published is not None
    assert [pair.published for pair in result.beside] == published["value"].to_list()
    first = result.beside[0]
    table = result.table(made).filter(scheme="DCTCP", load=0.2)
    assert first.ours == pytest.approx(table["value"][0])
    assert first.name == "DCTCP, load 0.2"
    row = f"| DCTCP, load 0.2 | 1.1 | {first.ours:.3g} | {first.ratio:.2f} |"
    assert row in experiments_page({"t1": figure}, {"t1": FigureRecord("paper", [], result.beside)})
    page = write_report(made).read_text(encoding="utf-8")
    assert f"DCTCP, load 0.2</th><td>1.1</td>\n<td>{first.ours:.3g}</td>" in page
    assert '<th scope="col">published</th>' in page
    assert not figure.compare_published(result.table(made).drop("load")), "other labels"


def test_numbers_that_are_not_published_have_the_name_of_their_origin(made: Path) -> None:
    figure = replace(discovery.discover(EXPERIMENTS)["t1"], reference="another simulator")
    result = replace(FigureResult.read(made / "t1.json"), reference="another simulator")
    records = {"t1": FigureRecord("paper", [], result.beside)}
    assert "| | another simulator | Sojourn |" in experiments_page({"t1": figure}, records)
    result.write(made)
    page = write_report(made).read_text(encoding="utf-8")
    assert '<th scope="col">another simulator</th>' in page


def test_the_report_links_to_the_files_of_each_figure(made: Path, tmp_path: Path) -> None:
    page = write_report(made, tmp_path / "page" / "index.html")
    links = re.findall(r'href="([^"]+t1\.(?:svg|png|csv|json))"', page.read_text(encoding="utf-8"))
    assert len(set(links)) == 4
    assert all((page.parent / link).is_file() for link in links)


def test_the_axis_of_collectives_contains_their_intervals() -> None:
    figure = discovery.discover(paths.EXPERIMENTS)["g5"]
    labels: dict[str, Any] = {"scheme": "DCTCP", "collective": "all-reduce", "placement": "packed"}
    rows = [
        labels | {"collective": name, "message_kb": size, "value": 2.0, "low": 1.0, "high": 4.0}
        for name in ("all-reduce", "all-to-all")
        for size in (16, 256)
    ]
    assert figure._draw is not None
    with plot.canvas(*figure.panels) as (_, axes):
        figure._draw(axes, pl.DataFrame(rows), None)
        assert all(panel.get_ylim()[1] > 4 for panel in axes.flat)


def test_a_figure_has_a_note_about_missing_convergence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXPERIMENTS.parent)
    made = tmp_path / "figures"
    # Two seeds, as at the scale `smoke`, have no interval.
    assert cli.invoke(["figure", "t1", "--scale", "quick", "--out", str(made)]) == 0
    (note,) = json.loads((made / "t1.json").read_text(encoding="utf-8"))["notes"]
    assert note.startswith("not converged: ")
    assert f"Note: {note}" in html.unescape(write_report(made).read_text(encoding="utf-8"))
