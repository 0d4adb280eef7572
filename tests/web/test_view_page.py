"""Page of a run: it states what Python computes, and mouse, keys and address choose alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
import pytest

from sojourn.analysis import breakdown, chains, metrics, paired
from sojourn.runs.results import Result, Run
from sojourn.runs.runner import run_many
from sojourn.view import page

SIZES = {"kind": "empirical", "table": "web_search"}
SCENARIO: dict[str, Any] = {
    "name": "A dumbbell",
    "account": True,
    "transport": "dctcp",
    "topology": {"kind": "dumbbell", "rate": "10 Gbps", "delay": "1 us"},
    "workload": {"kind": "poisson", "load": 0.7, "flows": 400, "sizes": SIZES},
}

FAT_TREE = SCENARIO | {
    "topology": {"kind": "fat_tree", "k": 8},
    "workload": SCENARIO["workload"] | {"load": 0.3},
}

LOSSY = SCENARIO | {
    "transport": "tcp",
    "record": {},
    "queue": {"kind": "drop_tail", "capacity": "30 KB"},
}

MOST = {"sample": 100}
"""Flows of a page, if not all."""

PAGES = {
    "sample": ["one"],
    **{name: [name] for name in ("one", "plain", "ideal", "unfinished", "fat tree", "recorded")},
    "two": ["one", "swift"],
    "different": ["one", "other flows"],
}
"""Runs of each page."""

Opener = Callable[..., Any]

TIMES = " \N{MULTIPLICATION SIGN}"


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    scenarios = {
        "one": SCENARIO,
        "plain": SCENARIO | {"account": False},
        "ideal": SCENARIO | {"model": "srpt"},
        "unfinished": SCENARIO | {"time_limit": "2 ms"},
        "swift": SCENARIO | {"transport": "swift"},
        "other flows": SCENARIO | {"seed": 2},
        "fat tree": FAT_TREE,
        "recorded": LOSSY,
    }
    return dict(zip(scenarios, run_many(list(scenarios.values())), strict=True))


@pytest.fixture(scope="module")
def pages(results: dict[str, Result], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in PAGES}
    for name, schemes in PAGES.items():
        runs = [Run({"scheme": scheme}, results[scheme]) for scheme in schemes]
        page.write(runs, files[name], source=f"{name}.toml", most=MOST.get(name))
    return files


def opened(open_page: Opener, file: Path, fragment: str = "", **options: Any) -> Any:
    shown = open_page(file, fragment, **options)
    shown.wait_until("typeof shown === 'object'")
    return shown


COLOURED = """(colour) => {
  const { ctx, bbox } = shown.flowsFrame.chart;
  const { data } = ctx.getImageData(bbox.left, bbox.top, bbox.width, bbox.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const distance = [0, 1, 2].map((side) => Math.abs(data[at + side] - colour[side]));
    if (Math.max(...distance) < 60) count += 1;
  }
  return count;
}"""

RED = [0xD5, 0x5E, 0x00]


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (420, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_offline_and_accessible(
    pages: dict[str, Path], open_page: Opener, name: str, width: int, theme: str
) -> None:
    shown = opened(open_page, pages[name], width=width, theme=theme)
    shown.check()


def test_flows_have_the_colours_of_their_causes(pages: dict[str, Path], open_page: Opener) -> None:
    shown = opened(open_page, pages["one"])
    assert shown.page.evaluate(COLOURED, RED) > 50
    shown.page.get_by_role("button", name="cross-traffic queueing").click()
    shown.page.wait_for_timeout(50)
    # The median line and the ring of the open flow have other colours.
    assert shown.page.evaluate(COLOURED, RED) == 0


def test_the_density_of_all_flows_stands_behind_a_sample(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["sample"])
    assert "density of all flows; 100 of 400 flows are shown" in shown("document.body.textContent")
    (grid,) = shown("shown.cloud.grids.map(({ cells }) => [...cells.columns.count])")
    assert sum(grid) == 400
    sampled = shown("[...shown.cloud.flow]")
    others = results["one"].flows.filter(~pl.col("flow").is_in(sampled))
    places = others.select("size_bytes", "slowdown").rows()
    is_drawn = """(places) => {
      const { chart } = shown.flowsFrame;
      const pixels = places.map(([size, slowdown]) => [
        chart.valToPos(size, "x", true), chart.valToPos(slowdown, "y", true),
      ]);
      const colours = ([x, y]) => {
        const { data } = chart.ctx.getImageData(Math.floor(x) - 1, Math.floor(y) - 1, 3, 3);
        return new Set(new Uint32Array(data.buffer));
      };
      const [empty] = colours([chart.bbox.left + 3, chart.bbox.top + 3]);
      return pixels.filter((pixel) => colours(pixel).difference(new Set([empty])).size).length;
    }"""
    drawn = shown.page.evaluate(is_drawn, [list(place) for place in places])
    assert drawn == len(places)
    for button in shown.page.locator(".legend button").all():
        button.click()
    shown.page.wait_for_timeout(50)
    assert shown.page.evaluate(COLOURED, RED) == 0


def test_many_flows_are_drawn_as_one_picture(tmp_path: Path, open_page: Opener) -> None:
    sizes = {"kind": "bounded_pareto", "shape": 1.1, "min": "1 KB", "max": "100 KB"}
    workload = SCENARIO["workload"] | {"flows": 20_000, "sizes": sizes}
    many = SCENARIO | {"model": "srpt", "workload": workload}
    run = Run({"scheme": "srpt"}, run_many([many])[0])
    counts = """(async () => {
      const { prototype } = CanvasRenderingContext2D;
      const calls = { fillRect: 0, drawImage: 0 };
      for (const name of Object.keys(calls)) {
        const original = prototype[name];
        prototype[name] = function (...given) {
          calls[name] += this === shown.flowsFrame.chart.ctx;
          return original.apply(this, given);
        };
      }
      shown.flowsFrame.draw();
      await new Promise((done) => setTimeout(done, 100));
      return calls;
    })()"""
    for most in (None, 100):
        page.write([run], tmp_path / "many.html", source="many.toml", most=most)
        calls = opened(open_page, tmp_path / "many.html")(counts)
        assert calls["drawImage"] == 1
        assert calls["fillRect"] <= 110, "the points of the sample, and the background"


def test_two_fingers_zoom_where_they_are(pages: dict[str, Path], open_page: Opener) -> None:
    shown = opened(open_page, pages["one"], width=420)
    ranges = """["x", "y"].map((axis) => shown.flowsFrame.range[axis].map(Math.log10))"""
    box = shown(
        "(({ x, y, width, height }) => ({ x, y, width, height }))"
        "(shown.flowsFrame.chart.over.getBoundingClientRect())"
    )
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    fingers = shown.page.context.new_cdp_session(shown.page)

    def touch(kind: str, *distances: float) -> None:
        points = [
            {"x": centre[0] + apart, "y": centre[1], "id": int(apart > 0)}
            for distance in distances
            for apart in (-distance, distance)
        ]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    before = shown(ranges)
    touch("touchStart", 30)
    for distance in (40, 50, 60):
        touch("touchMove", distance)
    touch("touchEnd")
    for (low, high), (new_low, new_high) in zip(before, shown(ranges), strict=True):
        assert (high - low) / (new_high - new_low) == pytest.approx(2, rel=0.1)
        assert low < new_low < new_high < high
    shown.check()


def test_bars_and_table_state_what_python_computes(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["one"])
    table = metrics.by_size(results["one"], "slowdown", statistics=["p50", "mean"])
    table = table.filter(pl.col("flows") > 0, pl.col("size") != "all")
    texts = "[...document.querySelectorAll('.bar .value')].map((value) => value.textContent)"
    assert shown(texts) == [f"{mean:.3g}{TIMES}" for mean in table["mean"]]
    rows = "[...document.querySelector('.facts').querySelectorAll('tbody tr')]"
    cells = shown(f"{rows}.map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert [row[0] for row in cells] == table["size"].to_list()
    assert [row[2] for row in cells] == [f"{median:.3g}{TIMES}" for median in table["p50"]]
    labels = "[...document.querySelectorAll('.bar .track')].map((bar) => bar.ariaLabel)"
    small = metrics.BUCKETS[1]
    flows = breakdown.divided(results["one"]).filter(*metrics.within(small))
    part = breakdown.mean_slowdown(flows)[breakdown.OTHERS]
    assert f"cross-traffic queueing {part:.3g}" in shown(labels)[0]


def test_a_box_is_selected_and_counted_and_dropped(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["one"], "#box=10000,100000,2,1000")
    flows = results["one"].flows
    inside = flows.filter(
        pl.col("size_bytes").is_between(1e4, 1e5), pl.col("slowdown").is_between(2, 1000)
    )
    rows = "[...document.querySelector('.facts').querySelectorAll('tbody tr')]"
    cells = shown(f"[...{rows}.at(-1).cells].map((cell) => cell.textContent)")
    assert cells[:2] == ["selection", str(inside.height)]
    mean = inside.select(pl.col("slowdown").mean()).item()
    assert cells[3] == f"{mean:.3g}{TIMES}"
    plot = shown.page.locator(".plot").first
    plot.focus()
    plot.press("Escape")
    assert "selection" not in shown(f"{rows}.map((row) => row.textContent).join()")
    assert "box" not in shown("location.hash")
    area = plot.bounding_box()
    mouse = shown.page.mouse
    mouse.move(area["x"] + 200, area["y"] + 60)
    mouse.down()
    mouse.move(area["x"] + 400, area["y"] + 200, steps=4)
    mouse.up()
    assert "selection" in shown(f"{rows}.map((row) => row.textContent).join()")
    again = opened(open_page, pages["one"], shown("location.hash"))
    assert again("document.querySelector('.facts').textContent") == shown(
        "document.querySelector('.facts').textContent"
    )


def test_the_address_keeps_flows_at_the_edge_of_a_box(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    # With six digits, the size would be rounded up.
    at_edge = (pl.col("size_bytes") > 1e6) & (pl.col("size_bytes") % 10 > 5)
    edge: int = results["one"].flows.filter(at_edge)["size_bytes"][0]
    shown = opened(open_page, pages["one"])
    value = shown(f"shown.cloud.value[shown.cloud.size.indexOf({edge})]")
    shown(f"shown.choose({{ box: {{ x: [{edge}, 1e9], y: [{value!r}, 1e9] }} }})")
    again = opened(open_page, pages["one"], shown("location.hash"))
    assert again("shown.chosen.box") == shown("shown.chosen.box")
    rows = "document.querySelector('.facts').textContent"
    assert again(rows) == shown(rows)


def test_a_selection_has_the_flows_that_are_shown(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["one"], "#box=1000,100000,,")
    (flows, causes) = shown("[[...shown.cloud.flow], [...shown.cloud.cause]]")
    cause = shown("shown.cloud.causes.findIndex(({ name }) => name === 'cross-traffic queueing')")
    queued = [flow for flow, own in zip(flows, causes, strict=True) if own == cause]
    table = results["one"].flows.with_columns(end_s=pl.col("start_s") + pl.col("fct_s"))
    inside = table.filter(pl.col("size_bytes").is_between(1000, 100_000))
    card = shown.page.get_by_label("FCT breakdown")
    selection = card.get_by_role("row", name="selection")
    listed = card.get_by_role("table", name="Slowest flows").get_by_role("row")

    def check(expected: pl.DataFrame) -> None:
        assert expected.height > 8
        mean = f"{expected.select(pl.col('slowdown').mean()).item():.3g}{TIMES}"
        cells = selection.get_by_role("cell").all_inner_texts()
        assert [cells[1], cells[3]] == [str(expected.height), mean]
        slowest = expected.sort("slowdown", descending=True)["flow"][0]
        assert listed.nth(1).inner_text().split()[0] == str(slowest)

    check(inside)
    shown.page.get_by_role("button", name="cross-traffic queueing").click()
    remaining = inside.filter(~pl.col("flow").is_in(queued))
    check(remaining)
    begin, end = (results["one"].summary["simulated_s"] * share for share in (0.2, 0.6))
    shown(f"shown.choose({{ time: [{begin}, {end}], isOnlyThen: true }})")
    then = (pl.col("start_s") <= end) & (pl.col("end_s") >= begin)
    check(remaining.filter(then))
    shown("shown.choose({ box: null })")
    check(table.filter(~pl.col("flow").is_in(queued), then))
    shown("shown.choose({ time: null })")
    shown.page.get_by_role("button", name="cross-traffic queueing").click()
    assert selection.count() == 0


def test_a_flow_is_opened_by_click_by_keys_and_by_the_address(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["one"])
    slowest = results["one"].flows.sort("slowdown", descending=True)["flow"].to_list()
    assert shown("shown.chosen.flow") == slowest[0]
    shown.page.get_by_role("button", name=f"open flow {slowest[1]}", exact=True).click()
    assert shown("shown.chosen.flow") == slowest[1]
    assert shown("location.hash") == f"#flow={slowest[1]}"
    plot = shown.page.locator(".plot").first
    plot.focus()
    plot.press("ArrowRight")
    plot.press("Enter")
    smallest = results["one"].flows.sort("size_bytes", "flow")["flow"][0]
    assert shown("shown.chosen.flow") == smallest
    again = opened(open_page, pages["one"], f"#flow={slowest[1]}")
    assert again("shown.chosen.flow") == slowest[1]


def test_two_runs_state_the_ratios_and_changes_of_python(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["two"])
    runs = [Run({"scheme": name}, results[name]) for name in PAGES["two"]]
    ratios = paired.ratios(runs, by="scheme")
    ratios = ratios.filter(pl.col("metric") == "FCT mean", pl.col("size") != "all")
    texts = "[...document.querySelectorAll('.bar .value')].map((value) => value.textContent)"
    assert shown(texts) == [f"{ratio:.3g}{TIMES}" for ratio in ratios["value"]]
    sums = "shown.head.pairs.groups.map((group) => group.parts.reduce((one, two) => one + two, 1))"
    assert shown(sums) == pytest.approx(shown("shown.head.pairs.groups.map(({ ratio }) => ratio)"))
    one, two = (results[name].flows.sort("flow") for name in PAGES["two"])
    expected = dict(zip(one["flow"], two["fct_s"] / one["fct_s"], strict=True))
    flows, values = shown("[[...shown.cloud.flow], [...shown.cloud.value]]")
    assert dict(zip(flows, values, strict=True)) == pytest.approx(expected, rel=1e-3)


def test_runs_with_different_flows_are_two_clouds(
    pages: dict[str, Path], open_page: Opener
) -> None:
    shown = opened(open_page, pages["different"])
    assert "the runs have different flows" in shown("document.body.textContent")
    assert shown("shown.cloud.flow.length") == 800
    assert shown("[...document.querySelectorAll('.card h2')].length") == 6


def test_a_link_is_chosen_by_mouse_by_keys_and_by_the_address(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["one"])
    table = pl.DataFrame(results["one"].summary["links"])
    busiest = table.sort("utilisation", descending=True)["name"].to_list()
    shown.page.get_by_role("button", name=busiest[1], exact=True).click()
    assert shown("shown.chosen.link") == busiest[1]
    assert unquote(shown("location.hash")).endswith(f"link={busiest[1]}")
    drawing = shown.page.locator(".network")
    drawing.focus()
    drawing.press("ArrowRight")
    assert shown("document.querySelector('#live').textContent").startswith(busiest[0])
    drawing.press("Enter")
    assert shown("shown.chosen.link") == busiest[0]
    shown.page.locator(".network polygon").first.click()
    assert shown("shown.chosen.link") != busiest[0]
    again = opened(open_page, pages["one"], f"#link={busiest[1]}")
    assert again("document.querySelectorAll('.network .chosen').length") == 1


def test_a_recorded_flow_shows_its_packets_chain_and_gauges(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    shown = opened(open_page, pages["recorded"])
    entries = results["recorded"].summary["record"]["flows"]
    recorded = {entry["flow"]: entry for entry in entries}
    flow = shown("shown.chosen.flow")
    assert flow in recorded
    panel = shown.page.locator(".wide")
    assert panel.locator(".plot").count() >= 3
    times = results["recorded"].flows.filter(flow=flow)["fct_s"] * 1e3
    assert f"{times[0]:.3g} ms" in panel.text_content()
    plot = panel.locator(".plot").first
    plot.focus()
    plot.press("ArrowRight")
    assert shown("document.querySelector('#live').textContent").startswith("segment 0")
    panel.get_by_role("button", name="table").nth(1).click()
    rows = "[...document.querySelectorAll('.wide table tbody tr')]"
    assert shown(f"{rows}.length") == chains.pieces(results["recorded"], flow).height
    flows = shown.page.locator(".plot").first
    flows.focus()
    flows.press("n")
    shown.wait_until(f"shown.chosen.flow !== {flow}")
    assert shown("shown.chosen.flow") in recorded
    link = recorded[shown("shown.chosen.flow")]["forward"][0]
    panel.get_by_role("button", name=link, exact=True).first.click()
    assert shown("shown.chosen.link") == link


def test_a_time_colours_the_network_and_filters_flows(
    pages: dict[str, Path], results: dict[str, Result], open_page: Opener
) -> None:
    end = results["recorded"].summary["simulated_s"]
    shown = opened(open_page, pages["recorded"], f"#t=0-{end / 4}")
    note = "document.querySelector('[aria-label=Network] p').textContent"
    assert "from 0 to" in shown(note)
    fills = (
        "[...document.querySelectorAll('.network polygon')].map((one) => one.getAttribute('fill'))"
    )
    then = shown(fills)
    shown.page.get_by_role("button", name="only flows in progress then").click()
    assert "only=1" in shown("location.hash")
    shown.page.get_by_role("button", name="whole run").click()
    assert "over the whole run" in shown(note)
    assert shown(fills) != then
    assert "t=" not in shown("location.hash")
    lane = shown.page.locator("[aria-label='Over time'] .plot").first
    lane.scroll_into_view_if_needed()
    area = lane.bounding_box()
    mouse = shown.page.mouse
    mouse.move(area["x"] + 150, area["y"] + 20)
    mouse.down()
    mouse.move(area["x"] + 250, area["y"] + 25, steps=4)
    mouse.up()
    assert "from" in shown(note)
