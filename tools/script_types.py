"""Type check of the pages' scripts: TypeScript reads their JSDoc types.

`python tools/script_types.py` prints one line for each finding and fails if there is any. It
installs `tools/scripts/package-lock.json` with npm at first; without npm it only prints that.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sojourn.figures import html_report
from sojourn.view import page
from sojourn.web import sheet

PACKAGES = Path(__file__).parent / "scripts"
PAGES = {"report": html_report.SCRIPTS, "view": page.SCRIPTS}
"""Scripts of each page besides those of all."""

OPTIONS = {
    "allowJs": True,
    "checkJs": True,
    "strict": True,
    "noEmit": True,
    "target": "es2023",
    "lib": ["es2023", "dom", "dom.iterable"],
    "types": [],
    # The chart library is a script of the page.
    "allowUmdGlobalAccess": True,
}

FINDING = re.compile(r"^\S*page\.js\((\d+),(\d+)\): (.*)")


def findings(names: Sequence[str]) -> list[str]:
    """Return what TypeScript finds in scripts, which are joined into one module as in a page."""
    lines: list[str] = []
    places = []
    for name in names:
        text = (sheet.FOLDER / name).read_text(encoding="utf-8").splitlines()
        places += [(name, number) for number in range(1, len(text) + 1)]
        lines += text
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder, "page.js")
        module.write_text("\n".join([*lines, "export {};"]), encoding="utf-8")
        chart = PACKAGES / "node_modules/uplot/dist/uPlot.d.ts"
        config = {"compilerOptions": OPTIONS, "files": [str(chart), str(module)]}
        Path(folder, "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
        compiler = PACKAGES / "node_modules/.bin/tsc"
        command = [str(compiler), "--project", folder, "--pretty", "false"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False)

    def moved(finding: re.Match[str]) -> str:
        name, number = places[int(finding[1]) - 1]
        return f"python/sojourn/web/{name}:{number}:{finding[2]}: {finding[3]}"

    found = [FINDING.sub(moved, line) for line in printed.stdout.splitlines()]
    if printed.returncode and not found:
        raise RuntimeError(f"tsc failed: {printed.stderr}")
    return found


def main() -> int:
    """Check the scripts of all pages."""
    npm = shutil.which("npm")
    if npm is None:
        print("scripts of pages were not type-checked: npm is not installed")
        return 0
    lock = PACKAGES / "package-lock.json"
    installed = PACKAGES / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([npm, "ci", "--silent"], cwd=PACKAGES, check=True)
    own = [name for name in sheet.SCRIPTS if not name.startswith("vendor/")]
    found = dict.fromkeys(line for names in PAGES.values() for line in findings([*own, *names]))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
