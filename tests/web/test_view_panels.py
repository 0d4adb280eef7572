"""Panels of the page of a run: what they state of single flows, links and times."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import FOLDABLE
from sojourn.runs.results import Run
from sojourn.runs.runner import run_many
from sojourn.view import answer, loading, page

Opener = Callable[..., Any]

RATES = {"name": "rates", "text": "time_s,rate_bps\n0,40e6\n0.8,10e6\n1.2,0\n1.4,20e6\n"}
CABLES = {
    "name": "cables",
    "text": "from,to,rate,delay\n"
    + "".join(f"{ends},1 Gbps,1 us\n" for ends in ("a,west", "west,east", "west,east", "east,b")),
}
PARETO = {"kind": "pareto", "mean": "50 KB", "shape": 1.3}
DUMBBELL = {"kind": "dumbbell", "senders": 4, "receivers": 4, "rate": "1 Gbps"}
POISSON = {"kind": "poisson", "load": 0.7, "flows": 60, "sizes": PARETO}
PLAIN: dict[str, Any] = {"transport": "dctcp", "topology": DUMBBELL, "workload": POISSON}

SCENARIOS: dict[str, dict[str, Any]] = {
    "rates": {
        "transport": "cubic",
        "time_limit": "1.9 s",
        "topology": {"kind": "link", "delay": "5 ms", "rate_trace": RATES},
        "workload": {"kind": "long_lived", "flows": 1},
    },
    "losses": {
        "transport": "tcp",
        "environment": "internet",
        "topology": {
            "kind": "link",
            "rate": "10 Mbps",
            "delay": "5 ms",
            "loss": 0.3,
            "ack_loss": 0.3,
        },
        "workload": {
            "kind": "flows",
            "flows": [
                {"source": 0, "target": 1, "size": "2000 B", "start": f"{start} s"}
                for start in range(12)
            ],
        },
    },
    "calls": PLAIN
    | {
        "workload": {
            "kind": "rpc",
            "request": {"kind": "fixed", "size": "500 B"},
            "response": {"kind": "fixed", "size": "30 KB"},
            "pattern": {"outstanding": 1, "calls": 5, "connections": 1},
        }
    },
    "plain": PLAIN,
    "cables": PLAIN | {"topology": {"kind": "graph", "file": CABLES}},
    "another seed": PLAIN | {"seed": 2},
    "failure": PLAIN
    | {"failures": [{"link": "left->right", "fails": "20 ms", "returns": "21 ms"}]},
    "large": PLAIN
    | {
        "time_limit": "15 ms",
        "workload": {"kind": "permutation", "size": "1 MB"},
        "topology": DUMBBELL | {"rate": "10 Gbps"},
    },
    "another network": PLAIN | {"topology": {"kind": "star", "hosts": 5}},
    "unfinished": PLAIN
    | {
        "time_limit": "5 ms",
        "workload": POISSON
        | {"load": 2, "allow_overload": True, "sizes": {"kind": "fixed", "size": "200 KB"}},
    },
    "terminated": {
        "transport": "pdq",
        "topology": {"kind": "star", "hosts": 12, "rate": "1 Gbps"},
        "workload": POISSON
        | {"load": 0.9, "flows": 100, "deadlines": {"mean": "1 ms", "minimum_slowdown": 1}},
    },
}
SCENARIOS["samples"] = FOLDABLE | {
    "fidelity": {"kind": "sample", "hosts": 64, "samples": 2},
    "workload": FOLDABLE["workload"] | {"flows": 300},
}
SCENARIOS["too large"] = SCENARIOS["large"] | {"topology": DUMBBELL | {"rate": "10 Mbps"}}

PAGES = {
    **{name: [name] for name in SCENARIOS},
    "seeds": ["plain", "another seed"],
    "networks": ["plain", "another network"],
    "failed": ["plain", "failure"],
    "apart": ["large", "too large"],
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    scenarios = {name: loading.with_recordings(one, []) for name, one in SCENARIOS.items()}
    plain = {"without breakdown": PLAIN, "ideal": PLAIN | {"model": {"kind": "omniscient"}}}
    results = run_many([*scenarios.values(), *plain.values()])
    names = (*scenarios, *plain)
    return {
        name: Run({"scheme": name}, result) for name, result in zip(names, results, strict=True)
    }


@pytest.fixture
def opened(runs: Mapping[str, Run], tmp_path: Path, open_page: Opener) -> Callable[..., Any]:
    """Return a function that opens the page of runs."""

    def opened(name: str, fragment: str = "", source: str = "lab.toml", **options: Any) -> Any:
        file = tmp_path / "page.html"
        page.write([runs[one] for one in PAGES.get(name, [name])], file, source=source)
        shown = open_page(file, fragment, **options)
        shown.wait_until("typeof shown === 'object'")
        return shown

    return opened


def plots_of(shown: Any, flow: int) -> None:
    """Wait for the plots of a flow."""
    shown.wait_until(f"(shown.frames.get('flow{flow}')?.size ?? 0) > 0")


def texts(shown: Any, flow: int, plot: int = 0) -> list[str]:
    """Return the tips of a plot of a flow."""
    plots_of(shown, flow)
    frame = f"[...shown.frames.get('flow{flow}')][{plot}]"
    tips: list[str] = shown(
        f"Array.from({frame}.options.marks.x, (_, i) => {frame}.options.marks.text(i))"
    )
    return tips


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (420, "dark")])
def test_a_page_is_silent_offline_and_accessible(
    opened: Callable[..., Any], name: str, width: int, theme: str
) -> None:
    opened(name, width=width, theme=theme).check()


def test_utilisation_over_time_is_by_the_capacity_of_that_time(
    opened: Callable[..., Any], runs: Mapping[str, Run]
) -> None:
    result = runs["rates"].result
    (link,) = (one for one in result.summary["links"] if one["name"] == "left->right")
    end = result.summary["simulated_s"]
    shown = opened("rates", f"#t=0-{end}")
    note = shown("document.querySelector('[aria-label=Network] p').textContent")
    assert f"left->right, {100 * link['utilisation']:.3g} %" in note
    # The queue is never empty from 0.9 s on, except while the link is down.
    frame = "[...shown.frames.get('run')].find(({ options }) => options.label.includes('util'))"
    times, shares = shown(f"[[...{frame}.options.marks.x], [...{frame}.options.marks.y]]")
    width = times[1]
    busy, down = [], []
    for time, share in zip(times, shares, strict=True):
        if 0.9 < time < 1.2 - width or time > 1.5:
            busy.append(share)
        if 1.2 < time < 1.4 - width:
            down.append(share)
    # Bins are as long as a few packets.
    assert busy == [pytest.approx(1, abs=0.25)] * len(busy)
    assert sum(busy) / len(busy) == pytest.approx(1, abs=0.02)
    assert set(down) == {0}
    assert times[-1] < end <= times[-1] + 1.0001 * width
    shown("shown.choose({ time: [0.9, 1.1] })")
    note = shown("document.querySelector('[aria-label=Network] p').textContent")
    assert float(note.rpartition(", ")[2].removesuffix(" %")) > 95


def test_the_network_states_the_interval_of_its_bins(opened: Callable[..., Any]) -> None:
    shown = opened("rates")
    width = shown("shown.head.runs[0].widths.series")
    shown(f"shown.choose({{ time: [{10.2 * width}, {12.4 * width}] }})")
    note = shown("document.querySelector('[aria-label=Network] p').textContent")
    found = re.match(r"utilisation from (\S+) ms to (\S+) ms, in bins of (\S+) ms;", note)
    assert found is not None
    times = [float(text) / 1e3 for text in found.groups()]
    assert times == pytest.approx([10 * width, 13 * width, width], rel=0.005)
    # Two intervals that are a bin apart differ in words.
    end = shown("shown.head.runs[0].simulated")
    notes = set()
    for first in range(20, int(end / width)):
        shown(f"shown.choose({{ time: [{(first + 0.4) * width}, {(first + 0.5) * width}] }})")
        notes.add(
            shown("document.querySelector('[aria-label=Network] p').textContent.split(',')[0]")
        )
    assert len(notes) == int(end / width) - 20 > 10


def test_lines_and_gauges_extend_to_the_end_of_the_run(opened: Callable[..., Any]) -> None:
    shown = opened("rates")
    plots_of(shown, 0)
    drawn = """(frame, share) => {
      const { chart } = frame;
      const { left, top, width, height } = chart.bbox;
      const end = frame.range.x[1] / 1.01;
      const x = frame.options.together === 'run' ? frame.range.x[1] * share : end * share;
      const across = left + (width * x) / frame.range.x[1];
      const { data } = chart.ctx.getImageData(Math.round(across), top, 1, height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const strongest = Math.max(data[at], data[at + 1], data[at + 2]);
        const weakest = Math.min(data[at], data[at + 1], data[at + 2]);
        if (data[at + 3] > 0 && strongest - weakest > 60) count += 1;
      }
      return count > 0;
    }"""
    for group in ("run", "flow0"):
        lanes = f"[...shown.frames.get('{group}')].slice({0 if group == 'run' else 1})"
        assert shown(f"{lanes}.map((frame) => ({drawn})(frame, 0.995))") == [True] * shown(
            f"{lanes}.length"
        )
    # Beyond the end of the run, lanes of a flow are empty.
    beyond = "[...shown.frames.get('flow0')].slice(1)"
    assert not any(shown(f"{beyond}.map((frame) => ({drawn})(frame, 1.008))"))


def test_unfinished_flows_have_a_lower_bound_and_terminated_ones_a_name(
    opened: Callable[..., Any], runs: Mapping[str, Run]
) -> None:
    result = runs["unfinished"].result
    flow, start = result.flows.filter(outcome="unfinished").select("flow", "start_s").row(0)
    bound = f"≥ {1e3 * (result.summary['simulated_s'] - start):.3g} ms"
    shown = opened("unfinished", f"#flow={flow}")
    shown.wait_until("document.querySelector('.wide p').textContent.includes('unfinished')")
    assert bound in shown("document.querySelector('.wide p').textContent")
    rows = "[...document.querySelector('[aria-label=\"FCT breakdown\"]').querySelectorAll('tr')]"
    assert any(bound in row for row in shown(f"{rows}.map((row) => row.textContent)"))
    tips = shown("[...shown.cloud.flow.keys()].map((row) => shown.cloud.text(row))")
    assert any(f"unfinished, FCT {bound}" in tip for tip in tips)

    flows = runs["terminated"].result.flows.filter(outcome="terminated")
    shown = opened("terminated", f"#flow={flows['flow'][0]}")
    assert "terminated" in shown("document.querySelector('.legend').textContent")
    tips = shown("[...shown.cloud.flow.keys()].map((row) => shown.cloud.text(row))")
    assert sum("terminated" in tip for tip in tips) == flows.height
    shown.wait_until("document.querySelector('.wide p').textContent.includes('; terminated')")


def test_different_flows_of_one_number_have_their_own_facts_and_paths(
    opened: Callable[..., Any], runs: Mapping[str, Run]
) -> None:
    shown = opened("seeds")
    flow = shown("shown.chosen.flow")
    recorded = shown("shown.head.runs.map(({ recorded }) => recorded.map((entry) => entry.flow))")
    assert all(flow in flows for flows in recorded)
    plots_of(shown, flow)
    facts = shown("document.querySelector('.wide').innerText")
    for name in PAGES["seeds"]:
        row = runs[name].result.flows.filter(flow=flow).row(0, named=True)
        numbers, names = (
            f"{source}{row['source']} → {target}{row['target'] - first}"
            for source, target, first in (("host ", "host ", 0), ("sender", "receiver", 4))
        )
        (line,) = (
            line for line in facts.splitlines() if line.startswith(f"{name}: ") and ";" in line
        )
        assert f"{numbers} ({names})" in line
        assert f"FCT {1e3 * row['fct_s']:.3g} ms" in line or "µs" in line
    assert "plain: Path:" in facts
    assert "another seed: Path:" in facts
    tips = shown("[...shown.cloud.flow.keys()].map((row) => shown.cloud.text(row))")
    assert all(re.search(r", sender\d → receiver\d\n", tip) for tip in tips)


def test_only_flows_that_changed_have_changes(
    opened: Callable[..., Any], runs: Mapping[str, Run]
) -> None:
    one, two = (runs[name].result.flows.sort("flow")["fct_s"] for name in PAGES["failed"])
    assert one.max() != two.max(), "FCTs of the two runs have different ranges"
    changed = (one - two).abs() > 0.01 * one
    assert changed.sum() > 3
    assert (one == two).sum() > 40
    tips = opened("failed")(
        "[...shown.cloud.flow].map((flow, row) => [flow, shown.cloud.text(row)])"
    )
    assert len(tips) == len(one)
    for flow, tip in tips:
        if one[flow] == two[flow]:
            assert tip.endswith(": 1 \N{MULTIPLICATION SIGN}")
        elif changed[flow]:
            assert re.search("\n.* [+\N{MINUS SIGN}]", tip)


def test_two_runs_without_a_common_finished_flow_state_it(opened: Callable[..., Any]) -> None:
    shown = opened("apart")
    text = shown("document.querySelector('main').innerText")
    assert "No flow finished in both runs." in text
    assert "What changed" not in text


def test_different_networks_are_named_as_the_reason_for_missing_panels(
    opened: Callable[..., Any],
) -> None:
    text = opened("networks")("document.body.innerText")
    assert "The runs have different networks" in text


def test_lost_packets_of_every_kind_are_shown(
    opened: Callable[..., Any], runs: Mapping[str, Run]
) -> None:
    packets = runs["losses"].result.packets
    lost = packets.filter(pl.col("lost_ps").is_not_null())
    for kind, name in {"syn": "SYN", "ack": "ACK"}.items():
        flow = lost.filter(kind=kind)["flow"][0]
        tips = texts(opened("losses", f"#flow={flow}"), flow)
        assert any(tip.startswith(name) and ", lost " in tip for tip in tips)


def test_the_last_segment_is_as_short_as_the_flow(opened: Callable[..., Any]) -> None:
    shown = opened("losses", "#flow=0")
    plots_of(shown, 0)
    top = shown("[...shown.frames.get('flow0')][0].range.y[1]")
    assert top == pytest.approx(1.04 * 2000)


def test_a_persistent_connection_is_the_reason_for_missing_packets(
    opened: Callable[..., Any],
) -> None:
    shown = opened("calls")
    plots_of(shown, shown("shown.chosen.flow"))
    assert "on a persistent connection" in shown("document.querySelector('.wide p').textContent")


def test_no_colour_of_the_panels_stands_for_two_things(opened: Callable[..., Any]) -> None:
    for theme in ("light", "dark"):
        shown = opened("plain", theme=theme)
        colours = shown(
            "shown.cloud.causes.map(({ colour }) => { const mark = document.createElement('i');"
            " mark.style.color = colour.startsWith('--') ? `var(${colour})` :"
            " `var(--c${colour.slice(1).toLowerCase()}, ${colour})`; document.body.append(mark);"
            " const { color } = getComputedStyle(mark); mark.remove(); return color; })"
        )
        assert len(set(colours)) == len(colours)
        plots_of(shown, shown("shown.chosen.flow"))
        legends = shown(
            "[...document.querySelectorAll('.wide .names')].map((names) =>"
            " [...names.querySelectorAll('.swatch')].map("
            "(mark) => mark.className + mark.style.cssText))"
        )
        assert len(legends) >= 2
        assert all(len(set(marks)) == len(marks) for marks in legends)


def test_two_joined_hosts_are_drawn(opened: Callable[..., Any]) -> None:
    shown = opened("rates")
    assert shown("document.querySelectorAll('.network line').length") == 2
    # Playwright takes a level line, which has no height, for invisible.
    shown.page.locator(".network line").first.click(force=True)
    assert shown("shown.chosen.link") == "left->right"


def test_the_command_that_records_a_flow_is_complete(opened: Callable[..., Any]) -> None:
    source = "'my lab.toml' --vary transport=dctcp,tcp"
    shown = opened("without breakdown", "#flow=3", source=source)
    shown.wait_until("document.querySelector('.wide code') !== null")
    code = shown("document.querySelector('.wide code').textContent")
    assert code == f"sojourn view {source} --flow 3"
    assert "main cause" not in shown("document.body.innerText")


def test_the_address_is_followed_and_has_short_times(opened: Callable[..., Any]) -> None:
    shown = opened("plain", "#t=5e-7-0.0001")
    assert shown("shown.chosen.time") == [5e-7, 1e-4]
    shown("location.hash = '#flow=5&t=0.001-0.002'")
    shown.wait_until("shown.chosen.flow === 5")
    assert shown("shown.chosen.time") == [0.001, 0.002]


def test_the_first_clause_ends_outside_parentheses(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = "Two's flows take 1.01 of one's mean FCT (0.98 to 1.03; no significant difference)"
    sentence = f"{first}; `sojourn compare` gives (intervals; more)."
    monkeypatch.setattr(answer, "sentence", lambda *_: sentence)
    shown = opened("plain")
    assert shown("document.querySelector('.answer strong').textContent") == first
    assert shown("document.querySelector('.answer').textContent") == sentence.replace("`", "")


def test_an_address_of_another_network_or_time_is_named(opened: Callable[..., Any]) -> None:
    shown = opened("plain", "#link=nosuch->x&t=100-200&only=1")
    note = "document.querySelector('[role=status]:not([hidden])')"
    end = shown("shown.head.runs[0].simulated")
    assert shown(f"{note}.textContent") == (
        "The network has no link nosuch->x. "
        f"The run ends at {1e3 * end:.3g} ms, before the time in the address."
    )
    assert shown("[shown.chosen.link, shown.chosen.time, shown.chosen.isOnlyThen]") == [
        None,
        None,
        False,
    ]
    assert "Link left->right" in shown("document.querySelector('main').innerText")
    shown.check()
    shown("location.hash = '#link=left->right&t=0.001-200'")
    shown.wait_until("shown.chosen.link === 'left->right'")
    assert shown("shown.chosen.time") == [0.001, end]
    assert not shown(f"{note}?.textContent")


def test_keys_are_listed_and_p_begins_with_the_last_recorded_flow(
    opened: Callable[..., Any],
) -> None:
    shown = opened("plain")
    keys = shown("[...document.querySelectorAll('dialog dt')].map((key) => key.textContent)")
    assert {"Enter, click", "[ ]", "Esc", "n p"} <= set(keys)
    recorded = shown("[...shown.cloud.flow].filter((_, row) => shown.cloud.isRecorded(row))")
    shown("shown.choose({ flow: -1 })")
    plot = shown.page.locator(".plot").first
    plot.focus()
    plot.press("p")
    assert shown("shown.chosen.flow") == recorded[-1]


def test_names_are_printed_though_they_are_buttons(opened: Callable[..., Any]) -> None:
    shown = opened("plain")
    shown.page.emulate_media(media="print")
    assert shown.page.get_by_role("button", name="left->right", exact=True).first.is_visible()
    assert not shown.page.get_by_role("button", name="keys").is_visible()


def test_an_ideal_with_parameters_has_its_name(opened: Callable[..., Any]) -> None:
    assert opened("ideal")("shown.head.runs[0].name") == "omniscient"


def test_a_long_table_scrolls(opened: Callable[..., Any]) -> None:
    shown = opened("rates")
    plots_of(shown, 0)
    shown.page.locator(".wide").get_by_role("button", name="table").first.click()
    assert shown("document.querySelector('.wide .scroll').clientHeight") < 600
    assert shown("document.querySelectorAll('.wide td').length") > 1000


def test_cables_between_the_same_nodes_have_their_own_series(opened: Callable[..., Any]) -> None:
    shown = opened("cables")
    rows = """[...document.querySelectorAll('.network ~ .facts tr')]
      .map(({ cells: [name, used] }) => `${name.textContent} ${used.textContent}`)"""
    by_run = shown(rows)
    assert any("(cable " in row for row in by_run)
    # The panel of the flow is drawn after the page has opened.
    shown.wait_until("document.querySelector('p.row') !== null")
    paths = shown("[...document.querySelectorAll('p.row')].map((row) => row.textContent)")
    assert any(re.match(r"Path:.*->(west|east) \(cable [12]\)", text) for text in paths)
    assert shown("document.querySelectorAll('.network line').length") == 4
    shown("shown.choose({ time: [0, shown.head.runs[0].simulated] })")
    assert shown("document.body.textContent.includes('utilisation from 0')")
    assert shown(rows) == by_run


def test_plots_are_laid_out_for_the_width_of_paper(opened: Callable[..., Any]) -> None:
    shown = opened("plain")
    plots_of(shown, shown("shown.chosen.flow"))
    widths = "[...document.querySelectorAll('.uplot canvas')].map((one) => one.clientWidth)"
    before = shown(widths)
    shown("dispatchEvent(new Event('beforeprint'))")
    shown.page.emulate_media(media="print")
    shown.page.set_viewport_size({"width": 718, "height": 1050})
    shown.wait_until(f"Math.max(...{widths}) <= 700")
    assert shown(
        "[...document.querySelectorAll('.frame')].every((frame) =>"
        " frame.querySelector('canvas').clientWidth === frame.clientWidth)"
    )
    assert shown("document.documentElement.scrollWidth") <= 718
    colours = "getComputedStyle(document.querySelector('.track')).printColorAdjust"
    assert shown(colours) == "exact"
    shown.page.set_viewport_size({"width": 1280, "height": 900})
    shown.page.emulate_media(media="screen")
    shown("dispatchEvent(new Event('afterprint'))")
    shown.wait_until(f"JSON.stringify({widths}) === '{before}'.replaceAll(' ', '')")


def test_every_plot_over_time_has_a_table_of_its_marks(opened: Callable[..., Any]) -> None:
    shown = opened("plain")
    card = shown.page.get_by_label("Over time", exact=True)
    frames = card.locator(".frame")
    assert card.get_by_role("button", name="table").count() == frames.count()
    card.get_by_role("button", name="table").nth(1).click()
    rows = frames.nth(1).locator("tbody tr")
    assert 40 < rows.count() <= 200
    assert rows.nth(0).inner_text().split("\t")[1].startswith("utilisation ")
    flows = shown.page.get_by_label("Flows", exact=True)
    flows.get_by_role("button", name="table").click()
    assert flows.locator("tbody tr").count() == 60
    assert "flow " in flows.locator("tbody tr").first.inner_text()


def test_the_slowest_flows_of_a_selection_are_named_so(opened: Callable[..., Any]) -> None:
    shown = opened("unfinished")
    main = shown.page.locator("main")
    assert "All flows, unfinished ones with lower bounds" in main.inner_text()
    assert "Slowest flows in the selection" not in main.inner_text()
    shown("shown.choose({ box: { x: [1, 1e9] } })")
    assert "Slowest flows in the selection" in main.inner_text()


def test_a_selection_of_all_flows_has_the_bounds_of_their_size(
    opened: Callable[..., Any], runs: Mapping[str, Run]
) -> None:
    shown = opened("unfinished", "#box=1,1e9,,")
    card = "document.querySelector('[aria-label=\"FCT breakdown\"]')"
    rows = f"[...{card}.querySelector('.facts').querySelectorAll('tbody tr')]"
    of_size, selection = shown(f"{rows}.map((row) => [...row.cells].map((one) => one.textContent))")
    assert selection[1:] == of_size[1:]
    assert selection[0] == "selection"
    assert selection[3].startswith("≥ ")
    # The box has a lower edge below the rim of unfinished flows: the finished ones are outside.
    shown("shown.choose({ box: { y: [shown.head.runs[0].rim * 0.99, 1e9] } })")
    count = runs["unfinished"].result.flows.filter(outcome="unfinished").height
    (_, flows, *statistics) = shown(f"[...{rows}.at(-1).cells].map((one) => one.textContent)")
    assert flows == str(count)
    assert all(text.startswith("≥ ") for text in statistics[:2])
    bars = f"[...{card}.querySelectorAll('.bar .value')].map((one) => one.textContent)"
    assert shown(bars)[-1] == "\N{EN DASH}"


def test_of_several_samples_links_of_the_first_are_offered(opened: Callable[..., Any]) -> None:
    shown = opened("samples")
    lines = shown("[...document.querySelectorAll('.lines p')].map((one) => one.textContent)")
    assert lines[0].startswith("fidelity: sample: 2 x 64 of 192 hosts")
    assert "of the first sample only: network and flows in progress" in lines
    link = shown("document.querySelector('[aria-label=Network] .facts button').textContent")
    # The busiest link has a series.
    frame = "[...shown.frames.get('run')].find(({ options }) => options.label.includes('util'))"
    assert link in shown(f"{frame}.options.y.name")
    assert shown(f"Math.max(...{frame}.options.marks.y)") > 0
    recorded = [entry for entry in shown("shown.head.runs[0].recorded") if entry["forward"]]
    path = "[...document.querySelectorAll('p.row')].find((row) => /^Path/.test(row.innerText))"
    for entry in (recorded[0], recorded[-1]):
        shown(f"shown.choose({{ flow: {entry['flow']} }})")
        shown.wait_until(f"{path}?.textContent.includes({entry['forward'][0]!r})")
        is_first = entry["flow"] < 100
        assert is_first == (entry == recorded[0])
        assert shown(f"{path}.querySelectorAll('button').length > 0") == is_first
