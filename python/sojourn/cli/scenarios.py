"""Commands for writing scenarios: `parts`, `examples`, `new`, `check`, `fold` and others."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn._core import ScenarioError
from sojourn.cli import completion
from sojourn.cli.shared import ScenarioFile, Scheme, prefix_errors


def parts(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Family, part, controller such as my.py:Mine, or words to search for.",
            autocompletion=completion.parts,
        ),
    ] = None,
) -> None:
    """List the parts of scenarios, show their parameters, or search.

    A search finds names, meanings and allowed values, in upper or lower case.

    Example: `sojourn parts dctcp`
    """
    from sojourn.base.messages import did_you_mean
    from sojourn.scenario import controller_files, encoding
    from sojourn.show import catalogue, console

    name = " ".join(words or ())
    families = encoding.parts()
    if controller_files.is_name(name):
        families, name = {"transport": [controller_files.read_part(name)]}, "transport"
    if not name.strip():
        sections = catalogue.overview(families)
    else:
        sections = catalogue.parts_text(families, name) or [
            *catalogue.field_text(families, name),
            *catalogue.value_text(families, name),
            *catalogue.search(families, name),
        ]
    if not sections:
        names = [part["name"] for members in families.values() for part in members]
        hint = did_you_mean(name.lower(), [*families, *names])
        raise ScenarioError(f"{name}: not in the name or meaning of any part{hint}")
    console.console.print(*sections, sep="\n")


def schema(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.")] = None,
) -> None:
    """Print the JSON schema of scenarios, for editors.

    Example: `sojourn schema --out schema.json`
    """
    import json

    from sojourn.scenario import encoding

    _write_or_print(json.dumps(encoding.schema(), indent=1, ensure_ascii=False) + "\n", out)


def examples(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Examples to copy.", autocompletion=completion.examples
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File of the copy, or an existing folder (default: NAME.toml)."
        ),
    ] = None,
) -> None:
    """List the examples, or copy some and the files that they need.

    Example: `sojourn examples dctcp_dumbbell`
    """
    from sojourn.scenario import examples as example_files

    if out is not None and not names:
        raise ScenarioError("--out: needs the name of an example")
    if out is not None and len(names or []) > 1 and not out.is_dir():
        raise ScenarioError(f"--out {out}: several examples need an existing folder")
    if names:
        written = [file for name in names for file in example_files.copy_example(name, out)]
        print(f"written: {', '.join(map(str, written))}")
    else:
        files = example_files.all_examples()
        width = max(map(len, files))
        for stem, file in files.items():
            print(f"{stem:{width}}  {example_files.summary(file)}")
        print("`sojourn examples NAME` copies an example")


def new(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")] = Path(
        "scenario.toml"
    ),
) -> None:
    """Write a first scenario, or a first controller in Python.

    A FILE that ends in .py becomes a controller.

    Example: `sojourn new mine.py`
    """
    from sojourn.scenario import examples as example_files

    print(f"written: {path}; now `{example_files.write_first(path)}`")


def check(path: ScenarioFile) -> None:
    """Check a scenario, and print it as JSON with all defaults.

    Of schemes, `schemes` shows the fields that differ between them. The queues at each link rate,
    buffers and hosts in force are printed to standard error.

    Example: `sojourn check scenario.toml`
    """
    import json

    from sojourn.scenario import encoding, overrides, reading
    from sojourn.show.environment import in_force_lines

    with prefix_errors(path):
        scenario = reading.read(path)
        checked = overrides.check_schemes(scenario)
        lines = [
            ": ".join([*map(str, labels.values()), line])
            for labels, each in overrides.expand(scenario, {})
            for line in in_force_lines(encoding.check(each), encoding.queues(each))
        ]
    print(json.dumps(checked, indent=2, ensure_ascii=False))
    for line in lines:
        print(line, file=sys.stderr)


def trace(
    path: ScenarioFile,
    scheme: Scheme = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV file to write.")] = None,
) -> None:
    """Write the workload of a scenario as CSV.

    A workload of kind `trace` replays the file. Refuses flows without a size, or with a `stop`.

    Example: `sojourn trace scenario.toml --out flows.csv`
    """
    from sojourn.runs.result_tables import flow_table
    from sojourn.scenario import encoding, overrides, reading
    from sojourn.scenario.fields import parts_of

    with prefix_errors(path):
        scenario = reading.read(path)
        inputs = [path, *reading.files_of(scenario, path.parent)]
        if out is not None and any(_is_same(out, file) for file in inputs):
            raise ScenarioError(f"--out {out}: is an input of the scenario; choose another file")
        chosen = overrides.choose_scheme(scenario, scheme)
        parts = parts_of(encoding.Prepared(chosen).complete()["workload"])
        if any(map(_has_endless_flows, parts)):
            raise ScenarioError("workload: a trace holds only flows that have a size and no `stop`")
        flows = flow_table(encoding.trace(chosen))
    columns = ("start_s", "source", "target", "size_bytes", "class", "deadline_s")
    # Twelve decimals are picoseconds, the resolution of the core's clock.
    _write_or_print(flows.select(columns).write_csv(float_precision=12), out)


def _has_endless_flows(part: Mapping[str, Any]) -> bool:
    """Return true if flows of a part of a workload do not end with their last byte."""
    flows = part["flows"] if part["kind"] == "flows" else [part]
    return any(
        part["kind"] in ("flows", "long_lived")
        and (flow["size"] == "none" or flow["stop"] != "none")
        for flow in flows
    )


def fold(
    path: ScenarioFile,
    hosts: Annotated[int, typer.Option(help="Hosts to keep, about; at least 64.")] = 256,
    scheme: Scheme = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file to write.")] = None,
) -> None:
    """Write a small scenario that stands for a large one.

    Some racks or pods are kept, with the links, the load and the locality that they have in the
    whole network (leaf_spine, clos, fat_tree).

    Example: `sojourn fold big.toml --hosts 256 --out small.toml`
    """
    from sojourn.base import files
    from sojourn.base.errors import FoldHostsError
    from sojourn.scale.fold import fold as fold_scenario
    from sojourn.scenario import environments, overrides, reading, writing
    from sojourn.scenario.fidelity import FIELD

    with prefix_errors(path):
        scenario = reading.read(path)
        inputs = list(reading.files_of(scenario, path.parent))
        if out is not None and inputs and out.parent.resolve() != path.parent.resolve():
            raise ScenarioError(f"--out {out}: must be in the folder of the files: {path.parent}")
        scenario = overrides.choose_scheme(scenario, scheme)
        try:
            folded = fold_scenario(scenario, hosts)
        except FoldHostsError as error:
            raise ScenarioError(f"--{error}") from None
        parts = {name: folded.scenario[name] for name in ("topology", "workload")}
        old = writing.texts(scenario)
        new = {name: text for name, text in writing.texts(parts).items() if name not in old}
        if new and out is None:
            raise ScenarioError(
                f"--out: needed, as the fold has a file of its own: {', '.join(new)}"
            )
    given = overrides.scheme_alone(reading.parse(path), scheme)
    # A scheme has the environment of all.
    environment = environments.FIELD
    given |= {environment: scenario[environment]} if environment in scenario else {}
    given.pop(FIELD, None)
    text = writing.as_toml(given | writing.with_names(parts))
    for name, content in new.items():
        files.write_text((out or path).parent / name, content)
    _write_or_print(f"{text}\n", out)
    for line in folded.lines():
        print(line, file=sys.stderr)


def _write_or_print(text: str, out: Path | None) -> None:
    """Write a text to a file or, without a file, to standard output."""
    from sojourn.base import files

    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        files.write_text(out, text)
        print(f"written to {out}")


def _is_same(out: Path, file: Path) -> bool:
    return out.exists() and file.exists() and out.samefile(file)
