"""Documents: links lead somewhere, and the glossary and the style guide describe the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.base import paths

ROOT = paths.checkout() or Path()
sys.path.insert(0, str(ROOT / "tools"))

import prose  # noqa: E402 - a script of the checkout, not of the package

PAGES = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.splitlines()
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
SOURCES = [ROOT / "crates", ROOT / "python"]


def slug(heading: str) -> str:
    """Return the anchor that GitHub and MyST give a heading."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {slug(heading) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for name, anchor in LINK.findall(text):
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{name} is missing"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name}#{anchor}: no such heading"


def test_names_of_the_glossary_are_in_the_code() -> None:
    rows = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()
    cells = [row.rsplit("|", 2)[1] for row in rows if row.startswith("| ")]
    names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert len(names) > 60
    code = "".join(
        file.read_text(encoding="utf-8")
        for folder in SOURCES
        for file in folder.rglob("*")
        if file.suffix in (".rs", ".py", ".pyi")
    )
    assert not sorted(name for name in names if not re.search(rf"\b{name}\b", code))


@pytest.mark.parametrize("rule", prose.rules(), ids=lambda rule: str(rule.name))
def test_a_rule_of_the_style_guide_finds_its_bad_example_only(
    rule: prose.Rule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, comment in (("a.py", '"""{}"""\n'), ("a.rs", "/// {}\n")):
        file = tmp_path / name
        file.write_text(comment.format(rule.bad), encoding="utf-8")
        assert prose.main([str(file)]) == 1
        assert f"{rule.name}: " in capsys.readouterr().out
        file.write_text(comment.format(rule.good), encoding="utf-8")
        assert prose.main([str(file)]) == 0


def test_code_and_quotations_are_not_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('```\nwhoever tells\n```\nThe word "told" and `told`.\n', encoding="utf-8")
    assert prose.main([str(page)]) == 0
