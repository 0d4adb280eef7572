"""Report in a browser: plots, filter, links, tabs, by pointer and by keys."""

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import EXPERIMENTS
from sojourn.figures import discovery
from sojourn.figures.figure import FigureResult
from sojourn.figures.html_report import anchor, write_report
from sojourn.show import plot
from sojourn.web import drawn

OpenPage = Callable[..., Any]

COPIES = 8
"""Number of figures of the page: one with all its claims, and copies with intervals."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report") / "figures"
    figure = discovery.discover(EXPERIMENTS)["t1"]
    figure.make("smoke", directory)
    # The scale `smoke` has too few seeds for intervals.
    source = tmp_path_factory.mktemp("quick")
    figure.make("quick", source)
    content = json.loads((source / "t1.json").read_text(encoding="utf-8"))
    for number in range(2, COPIES + 1):
        for suffix in ("svg", "png", "csv", "drawn.json"):
            shutil.copy(source / f"t1.{suffix}", directory / f"t{number}.{suffix}")
        claims = [content["claims"][0] | {"statement": f"claim {number} of a copy"}]
        copy = content | {"id": f"t{number}", "title": f"Copy {number}", "claims": claims}
        (directory / f"t{number}.json").write_text(json.dumps(copy), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def report(made: Path) -> Path:
    return write_report(made)


def draw_all(page: Any) -> None:
    """Scroll through the page, so that all figures are drawn."""
    height = page("document.documentElement.scrollHeight")
    for top in range(0, height, 600):
        page(f"scrollTo(0, {top})")
        page.page.wait_for_timeout(20)
    page.wait_until("[...document.querySelectorAll('.shown')].every((place) => place.firstChild)")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_report_is_silent_and_accessible(
    report: Path, open_page: OpenPage, theme: str, width: int
) -> None:
    page = open_page(report, width=width, theme=theme)
    draw_all(page)
    page.check()


COLOURS = """(selector) => [...document.querySelectorAll(`${selector} canvas`)].map((canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let count = 0;
  for (let index = 0; index < data.length; index += 4) {
    const [red, green, blue, alpha] = data.slice(index, index + 4);
    if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) count += 1;
  }
  return count;
})"""


def test_every_plot_has_colours_until_its_schemes_are_hidden(
    report: Path, open_page: OpenPage
) -> None:
    page = open_page(report)
    draw_all(page)
    counts = page.page.evaluate(COLOURS, ".shown")
    # Three panels of the head, and one of each figure.
    assert len(counts) == 3 + COPIES
    assert all(count > 50 for count in counts)
    page.page.locator("#t1 .legend button").first.focus()
    for button in page.page.locator("#t1 .legend button").all():
        button.press("Enter")
    page.wait_until(f"({COLOURS})('#t1 .shown')[0] === 0")


def test_lines_of_one_colour_differ_in_the_legend(
    made: Path, open_page: OpenPage, tmp_path: Path
) -> None:
    directory = tmp_path / "figures"
    shutil.copytree(made, directory)
    styles = {"dashed": ("--", ""), "dotted": (":", ""), "with circles": ("-", "o")}
    styles |= {"with squares": ("-", "s"), "dotted with crosses": (":", "x"), "plain": ("-", "")}
    with plot.canvas() as (picture, axes):
        for name, (line, marker) in styles.items():
            look: Any = {"color": "#0072B2", "linestyle": line, "marker": marker}
            axes.plot([1, 2, 3], [1, 2, 3], label=name, **look)
        drawn.write(picture, directory / "t2")
    page = open_page(write_report(directory), "#t2")
    page.wait_until("document.querySelector('#t2 .legend button') !== null")
    buttons = page.page.locator("#t2 .legend button")
    assert buttons.all_text_contents() == list(styles)
    swatches = page.page.locator("#t2 .legend .swatch").all()
    assert len({swatch.screenshot() for swatch in swatches}) == len(styles)
    page.check()


def test_arrow_keys_announce_the_values_of_the_table(
    report: Path, made: Path, open_page: OpenPage
) -> None:
    page = open_page(report, "#t2")
    page.wait_until("document.querySelector('#t2 .plot') !== null")
    table = FigureResult.read(made / "t2.json").table(made).filter(scheme="DCTCP")
    values = [f"{value:.3g}".rstrip("0").rstrip(".") for value in table["value"]]
    plot = page.page.locator("#t2 .plot")
    plot.focus()
    announced = set()
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowRight"):
        plot.press(key)
        announced.add(page("document.querySelector('#live').textContent"))
    assert any(
        text.startswith("DCTCP, load: 0.2, mean slowdown: " + values[0]) for text in announced
    )
    assert any("published" in text for text in announced)
    assert any(re.search(r"\(\S+ to \S+\)", text) for text in announced), "intervals"


def test_the_pointer_shows_the_tip_of_a_point(report: Path, open_page: OpenPage) -> None:
    page = open_page(report, "#t1")
    page.wait_until("document.querySelector('#t1 .u-over') !== null")
    area = page.page.locator("#t1 .u-over").bounding_box()
    for share in range(1, 40):
        page.page.mouse.move(area["x"] + 30, area["y"] + area["height"] * share / 40)
        if page("!document.querySelector('#tip').hidden"):
            break
    assert "mean slowdown: " in page("document.querySelector('#tip').textContent")


def shown_figures(page: Any) -> list[str]:
    script = "[...document.querySelectorAll('.figure')].filter((item) => !item.hidden && "
    ids: list[str] = page(script + "!item.closest('[hidden]')).map((item) => item.id)")
    return ids


def test_figures_are_filtered_by_text_and_verdict(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    assert len(shown_figures(page)) == COPIES
    field = page.page.get_by_role("searchbox")
    field.fill("copy 3")
    assert shown_figures(page) == ["t3"]
    assert page("document.querySelector('[role=status]').textContent") == f"1 of {COPIES} figures"
    field.fill("")
    for name in ("✓ held", "not judged"):
        page.page.get_by_role("button", name=name).press("Enter")
    assert shown_figures(page) == ["t1"]
    hidden = "[...document.querySelectorAll('#t1 .claims li')].map((item) => item.hidden)"
    assert page(hidden) == [True, False, True, True]
    # The address gives the same view again.
    again = open_page(report, page("location.hash"))
    assert shown_figures(again) == ["t1"]
    field.fill("no such figure")
    assert shown_figures(page) == []


def test_links_land_where_they_lead(report: Path, open_page: OpenPage) -> None:
    for target in (f"t{COPIES - 1}", anchor("t6", "claim 6 of a copy")):
        for width in (1280, 420):
            page = open_page(report, f"#{target}", width=width)
            page.page.wait_for_timeout(600)
            top = page(f"document.getElementById('{target}').getBoundingClientRect().top")
            assert 0 <= top <= 70
    # A link to a figure that the filter hides shows all figures.
    page = open_page(report, "#find=copy+3")
    page("location.hash = 't5'")
    page.wait_until("!document.getElementById('t5').closest('[hidden]')")


def test_anchors_of_claims_last_as_long_as_their_statements() -> None:
    assert anchor("a2", "flows are slower") == anchor("a2", "flows are slower")
    assert anchor("a2", "flows are slower") != anchor("a2", "flows are faster")
    assert re.fullmatch(r"a2-[0-9a-f]{6}", anchor("a2", "flows are slower"))


def test_tabs_show_picture_table_and_scenarios_by_keys(
    report: Path, made: Path, open_page: OpenPage
) -> None:
    page = open_page(report, "#t1")
    page.wait_until("document.querySelector('#t1 canvas') !== null")
    page.page.locator("#t1 [role=tab]").first.focus()
    page.page.keyboard.press("ArrowRight")
    page.wait_until("document.querySelector('#t1 img')?.naturalWidth > 100")
    alternative = page("document.querySelector('#t1 img').alt")
    assert alternative.startswith(
        "Mean slowdown against load. mean slowdown against load. Claims: 2"
    )
    page.page.keyboard.press("ArrowRight")
    page.wait_until("document.querySelector('#t1 .shown table') !== null")
    result = FigureResult.read(made / "t1.json")
    table = result.table(made)
    assert page("document.querySelectorAll('#t1 .shown tbody tr').length") == table.height
    head = "[...document.querySelectorAll('#t1 .shown thead th')].map((cell) => cell.textContent)"
    assert page(head) == table.columns
    page.page.keyboard.press("ArrowRight")
    page.wait_until("document.querySelector('#t1 pre') !== null")
    texts = page("[...document.querySelectorAll('#t1 pre')].map((item) => item.textContent)")
    assert [tomllib.loads(text) for text in texts] == [item.scenario for item in result.scenarios]
    page.page.keyboard.press("ArrowRight")
    page.wait_until("document.querySelector('#t1 canvas') !== null")
    page.check()


DIFFERENT_PIXELS = """async (text) => {
  const file = new Image();
  file.src = `data:image/svg+xml;base64,${btoa(text)}`;
  await file.decode();
  const [shown, expected] = [document.querySelector("#t2 img"), file].map((image) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, canvas.width, canvas.height).data;
  });
  return expected.reduce((sum, value, index) => sum + (Math.abs(value - shown[index]) > 128), 0);
}"""


def test_the_picture_is_that_of_the_file_with_all_its_characters(
    report: Path, made: Path, open_page: OpenPage
) -> None:
    # The outlines of the copy's characters are those of the first figure.
    page = open_page(report, "#t2")
    page.wait_until("document.querySelector('#t2 canvas') !== null")
    page.page.locator("#t2 [role=tab]", has_text="Picture").press("Enter")
    page.wait_until("document.querySelector('#t2 img')?.naturalWidth > 100")
    svg = (made / "t2.svg").read_text(encoding="utf-8")
    assert page.page.evaluate(DIFFERENT_PIXELS, svg) == 0
    without_characters = re.sub(r"<use [^>]*DejaVuSans[^>]*>", "", svg)
    assert page.page.evaluate(DIFFERENT_PIXELS, without_characters) > 1000
    with page.page.expect_download() as download:
        page.page.locator("#t2 a[download='t2.svg']").click()
    assert "<svg" in download.value.path().read_text(encoding="utf-8")


def test_all_figures_are_drawn_before_printing(report: Path, open_page: OpenPage) -> None:
    page = open_page(report)
    page.page.wait_for_timeout(1000)
    page("dispatchEvent(new Event('beforeprint'))")
    page.wait_until(f"document.querySelectorAll('.figure canvas').length === {COPIES}")
    assert page("document.documentElement.dataset.theme") == "light"
    assert page(
        "[...document.querySelectorAll('.panel')].every((panel) =>"
        " panel.querySelector('canvas').clientWidth <= panel.clientWidth)"
    )


def test_without_scripts_there_are_headings_claims_and_files(report: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    text = page.locator("body").inner_text()
    assert "flows are slower at a higher load" in text
    assert "files beside the page: SVG" in text
    assert page.locator("a[href='./t1.svg']").count() == 1
    context.close()
