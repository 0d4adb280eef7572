"""`sojourn plot` and `sojourn compare --plot`: files, choices, errors, and legends."""

import html
import itertools
import re
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import sojourn
from sojourn import cli, metrics, plot
from sojourn.show.plot import run_pictures
from sojourn.show.style import distinct, look

CLASSES = """
time_limit = "20 ms"
transport = "dctcp"
topology = { kind = "dumbbell", senders = 3, receivers = 3, rate = "1 Gbps" }
[workload]
kind = "mixed"
[[workload.parts]]
kind = "poisson"
class = "background"
load = 0.3
flows = 20
sizes = { kind = "fixed", size = "50 KB" }
[[workload.parts]]
kind = "permutation"
class = "bulk"
size = "200 KB"
"""

SAMPLES = """
transport = "dctcp"
topology = { kind = "leaf_spine", leaves = 12 }
fidelity = { kind = "sample", hosts = 64, samples = 2 }
[workload]
kind = "poisson"
load = 0.4
flows = 300
sizes = { kind = "empirical", table = "web_search" }
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOJOURN_CACHE", str(tmp_path / "cache"))
    Path("lab.toml").write_text(CLASSES, encoding="utf-8")
    return tmp_path / "lab.toml"


def texts(picture: Path) -> list[str]:
    """Return the comments of an SVG, which are its texts, because letters are drawn as paths."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    root = ET.parse(picture, parser).getroot()
    comments = (item for item in root.iter() if callable(item.tag))
    return [html.unescape(str(item.text)).strip() for item in comments]


def written(printed: str) -> list[str]:
    return printed.strip().rpartition(": ")[2].split(", ")


def test_a_scenario_is_run_with_the_samples_that_the_pictures_need(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [name for name in run_pictures.PICTURES if name != "rate"]
    assert cli.invoke(["plot", "lab.toml", "--what", ",".join(names)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("environment: ")
    assert written(printed) == [f"{name}.{suffix}" for name in names for suffix in ("svg", "png")]
    out = Path("results/plot/lab")
    labels = {
        "queue": ["left->right", "queue (KB)"],
        "throughput": ["throughput (Mb/s)"],
        "link_throughput": ["left->right", "throughput of the link (Gb/s)"],
        "window": ["congestion window (KB)"],
        "rtt": ["measured RTT (µs)"],
        "flows": ["flows in progress"],
        "cdf": ["slowdown", "fraction of flows", "lab"],
        "topology": ["sender0", "right"],
    }
    for name in names:
        found = texts(out / f"{name}.svg")
        assert set(labels[name]) <= set(found), name
        # The largest flows, of which three are of one class.
        flows = [text for text in found if re.fullmatch(r"flow \d+ \(\w+\)", text)]
        assert bool(flows) == (name in ("throughput", "window", "rtt"))


def test_samples_change_no_other_result() -> None:
    assert cli.invoke(["plot", "lab.toml", "--what", "queue"]) == 0
    plain, sampled = sorted(
        (sojourn.Result.read(entry) for entry in Path("cache").glob("[!.]*")),
        key=lambda result: result.samples.height,
    )
    assert plain.samples.is_empty()
    assert plain.flows.equals(sampled.flows)


def test_a_folder_of_a_run_is_drawn_from_its_samples(capsys: pytest.CaptureFixture[str]) -> None:
    samples = '\n[samples]\ninterval = "100 us"\nqueues = ["right->left"]\nflows = [2]\n'
    Path("sampled.toml").write_text(CLASSES.replace("[workload]", f"{samples}[workload]", 1))
    assert cli.invoke(["run", "sampled.toml", "--out", "out"]) == 0
    capsys.readouterr()
    assert cli.invoke(["plot", "out", "--format", "pdf", "--out", "pictures"]) == 0
    printed = capsys.readouterr().out
    names = ("queue", "throughput", "window", "flows", "cdf", "topology")
    assert written(printed) == [f"{name}.pdf" for name in names]
    for name in written(printed):
        assert (Path("pictures") / name).read_bytes().startswith(b"%PDF")
    assert cli.invoke(["plot", "out", "--what", "rtt"]) == 2
    error = capsys.readouterr().err
    assert "--what rtt: the run has no samples of `measured_rtt_s`" in error
    assert "(sampled: flows, queue, throughput, window); `sojourn plot SCENARIO` runs" in error


def test_a_picture_names_the_classes_of_its_flows_and_its_only_link() -> None:
    command = ["plot", "lab.toml", "--what", "window,queue", "--out", "out"]
    assert cli.invoke([*command, "--flow", "2,10"]) == 0
    assert {"flow 2 (bulk)", "flow 10 (background)"} <= set(texts(Path("out/window.svg")))
    schemes = ["--vary", "transport=dctcp,swift"]
    assert cli.invoke([*command, *schemes, "--link", "right->receiver0"]) == 0
    labels = " ".join(texts(Path("out/queue.svg")))
    assert "queue, right->receiver0 (" in labels


def test_schemes_and_classes_are_curves_of_a_distribution() -> None:
    command = ["plot", "lab.toml", "--vary", "transport=dctcp,swift", "--what", "cdf,queue"]
    assert cli.invoke([*command, "--class", "bulk,background", "--out", "out"]) == 0
    curves = {f"{name}, {part}" for name in ("dctcp", "swift") for part in ("bulk", "background")}
    assert curves <= set(texts(Path("out/cdf.svg")))
    assert {"dctcp", "swift"} <= set(texts(Path("out/queue.svg")))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--what", "windows"], "--what windows: expected some of queue, throughput, "),
        (["--what", "windows"], "did you mean `window`?"),
        (["--what", "rate"], "--what rate: no flow has a sending rate (transport: dctcp)"),
        (["--what", "queue", "--vary", "model=srpt"], "--what queue: an ideal has no queue"),
        (["--format", "jpg"], "--format jpg: expected some of svg, png, pdf"),
        (["--flow", "x"], "--flow x: expected numbers of flows"),
        (["--flow", "99"], "--flow 99: the run has flows 0 to 15"),
        (["--link", "left-right"], "did you mean `left->right`?"),
        (["--class", "buk"], "--class buk: unknown class; did you mean `bulk`?"),
    ],
)
def test_an_invalid_choice_gives_a_one_line_error_and_no_pictures(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["plot", "lab.toml", *arguments]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert not Path("results").exists()


def test_by_default_a_picture_without_values_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("ideal.toml").write_text('model = "srpt"' + CLASSES, encoding="utf-8")
    assert cli.invoke(["plot", "ideal.toml", "--format", "svg"]) == 0
    assert written(capsys.readouterr().out) == ["cdf.svg", "topology.svg"]
    endless = CLASSES.partition("[workload]")[0] + 'workload = { kind = "long_lived" }'
    Path("endless.toml").write_text(endless, encoding="utf-8")
    assert cli.invoke(["plot", "endless.toml", "--format", "svg"]) == 0
    names = ["queue.svg", "throughput.svg", "topology.svg"]
    assert written(capsys.readouterr().out) == names
    assert cli.invoke(["plot", "endless.toml", "--what", "queue,cdf", "--out", "new"]) == 2
    assert "--what cdf: no flow has finished" in capsys.readouterr().err
    assert not Path("new").exists()
    Path("empty").mkdir()
    assert cli.invoke(["plot", "empty"]) == 2
    assert "sojourn: empty: expected a folder that `sojourn run --out` wrote" in (
        capsys.readouterr().err
    )


def test_a_comparison_draws_the_measures_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    measures = ["mean slowdown of class bulk", "p50 fct of <= 100 KB", "mean queue"]
    options = [item for measure in measures for item in ("--plot", measure)]
    command = ["compare", "lab.toml", "--vary", "transport=dctcp,swift", "--out", "out"]
    assert cli.invoke([*command, *options]) == 0
    found = texts(Path("out/comparison.svg"))
    for label in ("mean slowdown of class bulk", "p50 fct of <= 100 KB (µs)", "mean queue (KB)"):
        assert label in found
    # One legend for all panels.
    assert found.count("swift") == 1
    # A percentile without enough flows is not a blank picture.
    assert cli.invoke([*command, "--plot", "p99 slowdown of class bulk"]) == 0
    printed = capsys.readouterr().out
    assert "p99 slowdown of class bulk: no run has enough such flows" in " ".join(printed.split())
    assert "completion times and slowdowns" in printed
    assert cli.invoke([*command, "--plot", "p50 slowdwn"]) == 2
    assert "--plot p50 slowdwn: unknown measure; did you mean `slow" in capsys.readouterr().err


LONG = ['{"shared_buffer": "12 MB", "pause": {}}', '{"shared_buffer": "12 MB", "headroom": 1}']


@pytest.mark.parametrize(
    "names",
    [
        ["dctcp", "swift"],
        [f"scheme number {number} of twelve" for number in range(12)],
        [f"{name}, {long}" for name in ("dctcp", "swift", "dcqcn") for long in LONG],
    ],
)
@pytest.mark.parametrize("panels", [1, 2, 3])
def test_legends_overlap_neither_each_other_nor_the_axes(names: list[str], panels: int) -> None:
    rows = [
        {"scheme": name, "group": "all", "value": 1.0 + number, "low": 1.0, "high": 2.0 + number}
        for number, name in enumerate(names)
    ]
    with plot.canvas(1, panels) as (picture, grid):
        every: list[Any] = [grid] if panels == 1 else list(grid)
        for axes in every:
            plot.bars(axes, pl.DataFrame(rows), group="group", drawn_as=distinct(names))
        assert_no_overlap(picture, every)


def assert_no_overlap(picture: matplotlib.figure.Figure, panels: list[Any]) -> None:
    canvas: Any = FigureCanvasAgg(picture)
    canvas.draw()
    boxes = [axes.get_legend().get_window_extent() for axes in panels]
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)
    for axes, box in zip(panels, boxes, strict=True):
        inside = axes.get_window_extent()
        assert box.y0 >= inside.y1 - 1
        assert inside.height > 100
        assert box.x1 <= picture.bbox.x1 + 1


@pytest.mark.parametrize("vary", [[], ["--vary", "transport=dctcp,swift,timely,cubic,tcp,hpcc"]])
def test_texts_above_pictures_over_time_do_not_overlap(
    vary: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: list[Any] = []

    def keep(picture: Any, stem: Path, formats: Any) -> list[Path]:
        pictures.append(picture)
        return plot.save(picture, stem, formats)

    monkeypatch.setattr(run_pictures, "save", keep)
    names = "queue,window,rtt,flows,throughput"
    assert cli.invoke(["plot", "lab.toml", "--what", names, "--format", "png", *vary]) == 0
    for picture in pictures:
        canvas: Any = FigureCanvasAgg(picture)
        canvas.draw()
        (axes,) = picture.axes
        titles = [axes.title, axes._left_title, axes._right_title]
        above = [text for text in [*titles, *axes.get_legend().findobj(Text)] if text.get_text()]
        boxes = [text.get_window_extent() for text in above]
        for first, second in itertools.combinations(boxes, 2):
            assert not first.overlaps(second)
        assert axes.get_window_extent().height > 100
        assert all(box.y1 <= picture.bbox.y1 + 1 for box in boxes)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the lines of pictures that are drawn from now on."""
    drawn: list[Any] = []

    def keep(picture: Any, stem: Path, formats: Any) -> list[Path]:
        drawn.extend(picture.axes[0].get_lines())
        return plot.save(picture, stem, formats)

    monkeypatch.setattr(run_pictures, "save", keep)
    return drawn


@pytest.mark.parametrize("picture", ["throughput", "link_throughput"])
def test_throughputs_of_few_packets_do_not_exceed_the_rate_of_links(
    picture: str, lines: list[Any]
) -> None:
    size = 'sizes = { kind = "fixed", size = "20 KB" }'
    star = 'topology = { kind = "star", hosts = 4, rate = "10 Gbps", delay = "1 us" }'
    workload = f'[workload]\nkind = "poisson"\nload = 0.5\nflows = 40\n{size}\n'
    Path("small.toml").write_text(f'transport = "dctcp"\n{star}\n{workload}', encoding="utf-8")
    assert cli.invoke(["plot", "small.toml", "--what", picture, "--format", "svg"]) == 0
    assert len(lines) == (4 if picture == "throughput" else 1)
    for line in lines:
        times, values = np.array(line.get_data(), dtype=float)
        # At least ten packets are in a span; one more may end in it.
        assert 0 < values.max() <= 1.1 * 10
        assert times[-1] - times[0] > 10
        if picture == "throughput":
            # The value until the next time is the mean, and flows are delivered as a whole.
            kilobytes = (values[:-1] * np.diff(times)).sum() / 8
            assert kilobytes == pytest.approx(20, rel=0.1)


@pytest.mark.parametrize("picture", ["throughput", "link_throughput"])
def test_a_throughput_is_drawn_from_the_start_of_a_flow_to_its_end(
    picture: str, lines: list[Any]
) -> None:
    Path("stopped.toml").write_text(
        'time_limit = "20 ms"\n'
        'topology = { kind = "dumbbell", senders = 1, receivers = 1, rate = "1 Gbps" }\n'
        'transport = { kind = "constant_rate", rate = "500 Mbps" }\n'
        'samples = { interval = "2 ms", flows = [0], links = ["left->right"] }\n'
        'workload = { kind = "long_lived", start = "6 ms", stop = "14 ms" }\n',
        encoding="utf-8",
    )
    assert cli.invoke(["run", "stopped.toml", "--out", "out"]) == 0
    assert cli.invoke(["plot", "out", "--what", picture, "--format", "svg"]) == 0
    (line,) = lines
    times, values = np.array(line.get_data(), dtype=float)
    assert times[values > 0] == pytest.approx([6, 8, 10, 12, 14])


@pytest.mark.parametrize(
    ("options", "twice"),
    [
        (["--what", "queue", "--link"], "left->right,left->right"),
        (["--what", "throughput", "--flow"], "0,00"),
        (["--what", "cdf", "--class"], "bulk,bulk"),
    ],
)
def test_a_name_that_is_given_twice_is_drawn_once(options: list[str], twice: str) -> None:
    drawn = []
    for names in (twice, twice.partition(",")[0]):
        command = ["plot", "lab.toml", *options, names, "--format", "svg", "--out", "out"]
        assert cli.invoke(command) == 0
        drawn.append(texts(Path("out", f"{options[1]}.svg")))
    assert drawn[0] == drawn[1]


def test_an_error_of_a_picture_names_the_class_of_a_controller(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path(sojourn.__file__).parents[2] / "examples/controllers/phost.py"
    arguments = ["--vary", f"transport={file}:PHost", "--what", "window"]
    assert cli.invoke(["plot", "lab.toml", *arguments]) == 2
    assert "no flow has a congestion window (transport: PHost)" in capsys.readouterr().err


@pytest.mark.parametrize("flow", ["0", "8,12"])
def test_flows_shorter_than_the_interval_of_samples_are_an_error(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = '{ kind = "incast", fan_in = 8, size = "900 B", interval = "2 ms", events = 2000 }'
    star = 'topology = { kind = "star", hosts = 9 }'
    Path("short.toml").write_text(f'transport = "dctcp"\n{star}\nworkload = {workload}\n')
    assert cli.invoke(["plot", "short.toml", "--what", "throughput", "--flow", flow]) == 2
    error = capsys.readouterr().err
    assert re.search(r"the longest of the flows lasts [4-6]\.\d+ µs, and samples have an", error)
    assert "an interval of 80 µs; choose longer flows with --flow" in error


def test_pictures_of_comparisons_and_breakdowns_have_the_formats_that_are_chosen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--vary", "transport=dctcp,swift", "--format", "pdf", "--out"]
    for command, pictures in (
        (["compare", "lab.toml", *options, "c"], {"c/comparison.pdf", "c/pairs.pdf"}),
        (["explain", "lab.toml", *options, "e"], {"e/account.pdf"}),
        (["explain", "lab.toml", "--flow", "3", *options, "f"], {"f/chain.pdf"}),
    ):
        assert cli.invoke(command) == 0
        written = {file.as_posix() for file in Path(command[-1]).iterdir()}
        assert {name for name in written if not name.endswith(".csv")} == pictures
        assert all(Path(name).read_bytes().startswith(b"%PDF") for name in pictures)
        # Pictures of an earlier command would be of other schemes.
        assert cli.invoke([*command, "--format", "svg"]) == 0
        assert not any(Path(name).exists() for name in pictures)
    capsys.readouterr()
    assert cli.invoke(["compare", "lab.toml", "--format", "jpg"]) == 2
    assert "--format jpg: expected some of svg, png, pdf" in capsys.readouterr().err


@pytest.mark.parametrize("fidelity", ["sample", "packets"])
def test_titles_of_pictures_name_what_stands_for_the_whole_network(fidelity: str) -> None:
    text = SAMPLES.replace('fidelity = { kind = "sample", hosts = 64, samples = 2 }', "")
    if fidelity == "sample":
        text = SAMPLES
    Path("many.toml").write_text(f'time_limit = "1 ms"\n{text}', encoding="utf-8")
    options = ["--vary", "transport=dctcp,swift", "--format", "svg", "--out", "o"]
    for command, pictures in (
        (["compare"], ["comparison", "pairs"]),
        (["explain"], ["account"]),
        (["explain", "--flow", "0"], ["chain"]),
        (["plot"], ["queue", "cdf", "topology"]),
    ):
        assert cli.invoke([command[0], "many.toml", *command[1:], *options]) == 0
        for name in pictures:
            titles = [text for text in texts(Path(f"o/{name}.svg")) if "fidelity" in text]
            expected = ["fidelity sample: 2 x 64 of 192 hosts"]
            assert titles == (expected if fidelity == "sample" else [])


def test_panels_of_many_schemes_are_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures: list[Any] = []

    def keep(picture: Any, stem: Path, formats: Any) -> list[Path]:
        pictures.append(picture)
        return []

    monkeypatch.setattr(plot, "save", keep)
    vary = "transport=dctcp,swift,timely,hpcc"
    assert cli.invoke(["explain", "lab.toml", "--vary", vary]) == 0
    (picture,) = pictures
    assert [axes.get_title() for axes in picture.axes] == ["dctcp", "swift", "timely", "hpcc"]
    assert [axes.get_subplotspec().rowspan.start for axes in picture.axes] == [0, 0, 0, 1]
    assert picture.get_figwidth() < 18


def test_no_two_schemes_of_a_picture_look_the_same() -> None:
    names = ["dctcp", "pcp", "swift", "patched timely", *(f"own {number}" for number in range(10))]
    looks = distinct(names)
    assert looks["dctcp"] == "dctcp"
    assert len({look(looks[name])[::2] for name in names}) == len(names)


def test_two_variants_of_a_scheme_have_its_colour() -> None:
    names = [f"{scheme}, flow {flow}" for scheme in ("dctcp", "bbr") for flow in (3, 8)]
    looks = distinct(names)
    first, second = look("dctcp").colour, look("bbr").colour
    assert [look(looks[name]).colour for name in names] == [first, first, second, second]
    assert [look(looks[name]).line for name in names] == [":", "-", ":", "-"]


def test_the_distribution_of_one_flow_is_one_step() -> None:
    run = sojourn.run(sojourn.read("lab.toml"))
    one = run.with_flows(run.flows.filter(outcome="finished").head(1))
    with plot.canvas() as (_, axes):
        plot.cdf(axes, metrics.cdf([sojourn.Run({"scheme": "dctcp"}, one)]))
        (line,) = axes.get_lines()
        (first, last), (low, high) = line.get_data()
        assert first == last
        assert (low, high) == (0, 1)
        least, most = axes.get_xlim()
        assert least < first < most


def test_a_pdf_has_fonts_that_publishers_accept(tmp_path: Path) -> None:
    with plot.canvas() as (picture, axes):
        axes.set_title("completion times")
        (file,) = plot.save(picture, tmp_path / "times", formats=["pdf"])
    content = file.read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_an_unknown_unit_is_named_with_the_allowed_ones() -> None:
    run = sojourn.run(sojourn.read("lab.toml"))
    table = metrics.cdf([sojourn.Run({"scheme": "dctcp"}, run)])
    with plot.canvas() as (_, axes), pytest.raises(ValueError, match="'Mbps': expected one of s, "):
        plot.cdf(axes, table, unit="Mbps")
    with plot.canvas() as (_, axes):
        plot.series(axes, table.rename({"fraction": "time_s"}), unit="Mb/s")


def test_the_example_of_the_documentation_runs() -> None:
    example = str(plot.__doc__).partition("::\n")[2]
    exec(textwrap.dedent(example), {})
    assert {"queue (KB)", "throughput (Gb/s)", "timely"} <= set(texts(Path("series.svg")))
    assert Path("cdf.pdf").exists()


def test_a_probe_without_samples_is_an_error() -> None:
    run = sojourn.Run({"scheme": "dctcp"}, sojourn.run(sojourn.read("lab.toml")))
    with pytest.raises(ValueError, match="'queue': not sampled"):
        metrics.series([run], "queue")


def test_of_several_samples_links_and_flows_are_of_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("samples.toml").write_text(SAMPLES, encoding="utf-8")
    command = ["plot", "samples.toml", "--format", "svg", "--out", "out"]
    assert cli.invoke([*command, "--what", "queue,throughput,topology"]) == 0
    printed = capsys.readouterr().out
    assert written(printed) == ["queue.svg", "throughput.svg", "topology.svg"]
    assert "fidelity: sample: 2 x 64 of 192 hosts" in printed
    assert "of the first sample only: sampled queues and rates" in printed
    flows = [name for name in texts(Path("out/throughput.svg")) if name.startswith("flow ")]
    assert len(flows) == 4
    nodes = [name for name in texts(Path("out/topology.svg")) if name.startswith(("leaf", "spine"))]
    assert len(nodes) == len(set(nodes)) == 4 + 4
    assert all("sample" not in name for name in nodes)
    link = "host0->leaf0 (sample 1)"
    assert cli.invoke([*command, "--link", link]) == 2
    assert f"--link {link}: unknown link; did you mean `host0->leaf0`?" in capsys.readouterr().err
    assert cli.invoke([*command, "--flow", "150"]) == 2
    assert "--flow 150: the first sample has flows 0 to 99" in capsys.readouterr().err
