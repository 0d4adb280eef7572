"""Sheets: the vendored library is unchanged, and data cannot become code."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.show import parts, style
from sojourn.web import sheet

VENDOR = sheet.FOLDER / "vendor"


def test_vendored_files_are_those_of_the_stated_package() -> None:
    source = tomllib.loads((VENDOR / "SOURCE.toml").read_text(encoding="utf-8"))
    found = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in VENDOR.iterdir()
        if file.name != "SOURCE.toml"
    }
    assert found == source["sha256"]
    banner = (VENDOR / "uPlot.iife.min.js").read_text(encoding="utf-8").partition("\n")[0]
    assert f"(v{source['version']})" in banner


def test_data_cannot_become_code() -> None:
    value = {"title": "</script><script>alert(1)</script>"}
    text = sheet.as_json(value)
    assert "<" not in text
    assert json.loads(text) == value
    page = sheet.render("sheet.html", [], {"data": text}, {"title": "<b>"})
    assert page.count("</script>") == 3
    assert "<title>&lt;b&gt;</title>" in page
    with pytest.raises(ValueError, match="block data: contains `<`"):
        sheet.render("sheet.html", [], {"data": "a<b"}, {"title": ""})
    with pytest.raises(ValueError, match="JSON compliant"):
        sheet.as_json(float("nan"))


def test_every_colour_has_a_counterpart_in_the_dark() -> None:
    styles = (sheet.FOLDER / "base.css").read_text(encoding="utf-8")
    defined = set(re.findall(r"--c([0-9a-f]{6}):", styles))
    used = {*style.COLOURS, style.BROWN, style.GREY, *parts.COLOURS.values()}
    assert {name[1:].lower() for name in used} <= defined


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("demo") / "demo.html"
    script = str(Path(__file__).with_name("demo.js"))
    text = sheet.render("sheet.html", [script], {}, {"title": "Demo"})
    page.write_text(text, encoding="utf-8")
    return page


COLOURED = """(frame) => {
  const { ctx, bbox } = frames[frame].chart;
  const { data } = ctx.getImageData(bbox.left, bbox.top, bbox.width, bbox.height);
  let [blue, orange] = [0, 0];
  for (let index = 0; index < data.length; index += 4) {
    if (data[index + 3] < 200) continue;
    if (data[index + 2] > data[index] + 60) blue += 1;
    if (data[index] > data[index + 2] + 60) orange += 1;
  }
  return [blue, orange];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_a_frame_is_silent_accessible_and_drawn(
    demo: Path, open_page: Callable[..., Any], theme: str, width: int
) -> None:
    page = open_page(demo, width=width, theme=theme)
    for frame in (0, 1):
        blue, orange = page.page.evaluate(COLOURED, frame)
        assert blue > 100
        assert orange > 100
    page("document.querySelector('.frame button').click()")
    page.check()


def test_marks_are_found_by_keys_alone(demo: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(demo)
    plot = page.page.locator(".plot").first
    plot.focus()
    live = "document.querySelector('#live').textContent"
    plot.press("ArrowRight")
    first = page(live)
    assert "10 B: " in first
    plot.press("ArrowRight")
    assert page(live).startswith(first.partition(",")[0])
    assert "15.8 B" in page(live)
    plot.press("ArrowUp")
    plot.press("ArrowDown")
    other = {"DCTCP": "TIMELY", "TIMELY": "DCTCP"}[first.partition(",")[0]]
    plot.press("ArrowUp") if other == "TIMELY" else plot.press("ArrowDown")
    assert page(live).startswith(other)
    plot.press("Shift+ArrowRight")
    assert "1.58 KB" in page(live)
    plot.press("Enter")
    assert len(page("opened")) == 1
    before = page("frames[0].range.x")
    plot.press("+")
    assert before[0] < page("frames[0].range.x[0]")
    # Frames that are together have the same horizontal range.
    assert page("frames[1].range.x") == page("frames[0].range.x")
    plot.press("0")
    assert page("frames[0].range.x") == before


def test_the_wheel_zooms_with_control_or_in_a_focused_plot(
    demo: Path, open_page: Callable[..., Any]
) -> None:
    page = open_page(demo)
    area = page.page.locator(".plot").first.bounding_box()
    mouse = page.page.mouse
    mouse.move(area["x"] + 300, area["y"] + 80)
    mouse.wheel(0, -200)
    assert page("frames[0].range.x") == [8, 1e7], "the page scrolls"
    page.page.keyboard.down("Control")
    mouse.wheel(0, -200)
    page.wait_until("frames[0].range.x[0] > 8")
    page.page.keyboard.up("Control")
    page.page.locator(".plot").first.press("0")
    mouse.wheel(0, -200)
    page.wait_until("frames[0].range.x[0] > 8")


def test_a_range_is_selected_by_keys_and_by_dragging(
    demo: Path, open_page: Callable[..., Any]
) -> None:
    page = open_page(demo)
    plot = page.page.locator(".plot").nth(1)
    plot.focus()
    plot.press("ArrowRight")
    plot.press("Shift+ArrowRight")
    plot.press("[")
    plot.press("Shift+ArrowRight")
    plot.press("]")
    low, high = page("frames[1].selected.x")
    assert (round(low), round(high)) == (1000, 100_000)
    plot.press("Escape")
    assert page("frames[1].selected") is None
    area = plot.bounding_box()
    mouse = page.page.mouse
    mouse.move(area["x"] + 200, area["y"] + 60)
    mouse.down()
    mouse.move(area["x"] + 400, area["y"] + 140, steps=4)
    mouse.up()
    box = page("frames[1].selected")
    assert box["x"][0] < box["x"][1]
    assert box["y"][0] < box["y"][1]
    assert page("frames[0].range.x") == [8, 1e7], "the other frame is not dragged"
    # Without a function for selections, dragging zooms.
    area = page.page.locator(".plot").first.bounding_box()
    mouse.move(area["x"] + 200, area["y"] + 60)
    mouse.down()
    mouse.move(area["x"] + 400, area["y"] + 140, steps=4)
    mouse.up()
    assert page("frames[0].range.x[0]") > 8
    mouse.dblclick(area["x"] + 300, area["y"] + 100)
    assert page("frames[0].range.x") == [8, 1e7]


def test_hidden_schemes_are_neither_drawn_nor_found(
    demo: Path, open_page: Callable[..., Any]
) -> None:
    page = open_page(demo)
    page.page.get_by_role("button", name="TIMELY").click()
    page.wait_until(f"({COLOURED})(0)[1] === 0")
    assert page.page.evaluate(COLOURED, 0)[0] > 100
    page.page.get_by_role("button", name="DCTCP").click()
    page.wait_until(f"({COLOURED})(0)[0] === 0")
    plot = page.page.locator(".plot").first
    plot.focus()
    plot.press("ArrowRight")
    assert page("document.querySelector('#live').textContent") == ""


def test_the_theme_changes_by_a_button(demo: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(demo)
    before = page("frames[0].chart.ctx.canvas.toDataURL()")
    page.page.get_by_role("button", name="dark colours").click()
    assert page("document.documentElement.dataset.theme") == "dark"
    page.wait_until(f"frames[0].chart.ctx.canvas.toDataURL() !== {json.dumps(before)}")
    page.check()


def test_numbers_have_three_digits_and_units(demo: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(demo)
    assert page("[0, 7.449, 1234.5, 20000, -0.5].map((value) => number(value))") == [
        *("0", "7.45", "1235", "20\u202f000", "\N{MINUS SIGN}0.5"),
    ]
    assert page("[999.9, 77600, 1e6].map(bytes)") == ["1 KB", "77.6 KB", "1 MB"]
    assert page("[7.16e-5, 0.00568, 2].map(seconds)") == ["71.6 µs", "5.68 ms", "2 s"]
    assert page("[9.997e-7, 0.9997, 999.7].map(seconds)") == ["1 µs", "1 s", "1000 s"]


def test_ticks_of_log_axes_are_at_1_2_and_5(demo: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(demo)
    assert page("logTicks(0.9, 16, 9)") == [1, 2, 5, 10]
    assert page("logTicks(10, 1e7, 7)") == [10, 100, 1000, 1e4, 1e5, 1e6, 1e7]
    assert page("logTicks(102, 108, 4)") == [102, 104, 106, 108]


def test_state_in_the_address_is_read_and_written(
    demo: Path, open_page: Callable[..., Any]
) -> None:
    page = open_page(demo, "#flow=17&link=left->right")
    assert page("[...readAddress()]") == [["flow", "17"], ["link", "left->right"]]
    page("writeAddress({ flow: 3, link: null, t: '0.1-0.2' })")
    assert page("location.hash") == "#flow=3&t=0.1-0.2"


def test_names_of_ticks_do_not_overlap(demo: Path, open_page: Callable[..., Any]) -> None:
    shown = open_page(demo)
    shown.wait_until("typeof frames === 'object'")
    ticks = """async ([names, range, scale]) => {
      const frame = new Frame(document.querySelector("#content"), {
        label: "schemes", height: 200, layers: () => [],
        x: { name: "", range, scale, ticks: names?.map((text, at) => ({ at, text })) },
        y: { name: "", range: [0, 1] },
      });
      await new Promise((done) => setTimeout(done, 100));
      const [axis] = frame.chart.axes;
      return { places: axis._splits, angle: axis._rotate, size: axis._size };
    }"""
    few = shown.page.evaluate(ticks, [["DCTCP", "TIMELY"], [-1, 2], "linear"])
    assert (few["places"], few["angle"]) == ([0, 1], 0)
    long = [f"a scheme with a long name {place}" for place in range(12)]
    many = shown.page.evaluate(ticks, [long, [-1, 12], "linear"])
    assert many["places"] == list(range(12))
    assert many["angle"] != 0
    assert many["size"] > few["size"]
    crowd = shown.page.evaluate(ticks, [[f"scheme {i}" for i in range(300)], [-1, 300], "linear"])
    assert 10 < len(crowd["places"]) < 100
    for low, high in ((1, 2.2), (3e6, 7e6), (0.98, 1.05)):
        places = shown.page.evaluate(ticks, [None, [low, high], "log"])["places"]
        assert 2 <= len(places) <= 15


def test_small_boxes_have_the_least_size(demo: Path, open_page: Callable[..., Any]) -> None:
    shown = open_page(demo)
    shown.wait_until("typeof frames === 'object'")
    count = """async (least) => {
      const sides = { left: [0.5], right: [0.5], bottom: [0.5], top: [0.5] };
      const box = { ...sides, colour: "#ff0000", least };
      const frame = new Frame(document.querySelector("#content"), {
        label: "box", height: 200, layers: () => [boxesLayer(box)],
        x: { name: "", range: [0, 1] }, y: { name: "", range: [0, 1] },
      });
      await new Promise((done) => setTimeout(done, 100));
      const { ctx, bbox } = frame.chart;
      const { data } = ctx.getImageData(bbox.left, bbox.top, bbox.width, bbox.height);
      let ink = 0;
      for (let at = 0; at < data.length; at += 4)
        if (data[at] - data[at + 1] > 0) ink += (data[at] - data[at + 1]) / 255;
      return ink;
    }"""
    assert shown.page.evaluate(count, 0) == 0
    assert shown.page.evaluate(count, 3) == pytest.approx(9, rel=0.1)
