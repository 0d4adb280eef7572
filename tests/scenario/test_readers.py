"""Fuzz test of readers: a damaged example or table gives a scenario or a one-line error.

`crates/core/tests/it/readers.rs` tests the core's reader in the same way; this test damages files
of bytes and TOML. `make fuzz-input COUNT=…` runs more cases from another `SEED`.
"""

import os
import random
import shutil
import unicodedata
from pathlib import Path

import pytest

import sojourn
from sojourn import ScenarioError
from sojourn.base import paths
from sojourn.scenario import encoding

COUNT = int(os.environ.get("SOJOURN_COUNT") or 1000)
SEED = int(os.environ.get("SOJOURN_SEED") or 1)

MEMORY = 100_000_000

HIDDEN = {"Cc", "Cf", "Zl", "Zp"}
"""Unicode categories of control characters, line separators and invisible characters."""

PIECES = [
    *(b"\0", b"\xff\xfe", b"\xc3", b"\x1b[31m", b"\r", b"\n", b"\t", b"\xef\xbb\xbf", b'"', b"'''"),
    *(b"[", b"]", b"{", b"}", b"[[", b"=", b".", b",", b"#", b"\\", b"\\u0000", b"\\n", b"\\x1b"),
    *(b"[" * 70, b"a." * 70, b"{a=" * 70, b"1979-05-27T07:32:00Z", b"nan", b"-inf", b"true", b""),
    *(b"0", b"-1", b"1e400", b"1e-320", b"9" * 19, b"9" * 5000, b"0x7f", b"1_000", b"18446744 s"),
]


def damage(generator: random.Random, content: bytes, other: bytes) -> bytes:
    """Return the content damaged in bytes, words or lines, or with a piece of another file."""
    start = generator.randrange(len(content) + 1)
    end = min(len(content), start + generator.randrange(20))
    head, piece, tail = content[:start], content[start:end], content[end:]
    lines = content.splitlines(keepends=True) or [b""]
    first, second = generator.randrange(len(lines)), generator.randrange(len(lines))
    words = content.split(b" ")
    words[generator.randrange(len(words))] = generator.choice(PIECES)
    flipped = bytes(byte ^ 1 << generator.randrange(8) for byte in piece[:1])
    return generator.choice(
        (
            head,
            head + tail,
            head + piece * generator.choice((2, 3, 1000)) + tail,
            head + flipped + piece[1:] + tail,
            head + generator.choice(PIECES) + tail,
            b" ".join(words),
            b"".join([*lines[:first], lines[second], *lines[first:]]),
            head + other[generator.randrange(len(other)) :],
        )
    )


def test_a_damaged_file_is_a_scenario_or_a_one_line_error(tmp_path: Path) -> None:
    # No Python files: a randomly changed controller could execute anything.
    data_files = (file for file in paths.EXAMPLES.iterdir() if file.suffix in (".toml", ".csv"))
    examples = {file.name: file.read_bytes() for file in data_files}
    shutil.copytree(paths.EXAMPLES, tmp_path / "examples")
    scenarios = [name for name in examples if name.endswith(".toml")]
    tables = {"own_sizes": ["own_sizes.csv"]}
    tables["replayed_trace"] = ["two_sites.csv", "backup_and_queries.csv"]
    lines = set()
    for number in range(SEED, SEED + COUNT):
        generator = random.Random(number)
        name = generator.choice([*tables, *scenarios])
        damaged = generator.choice(tables.get(name, [name]))
        path = tmp_path / "examples" / f"{name.removesuffix('.toml')}.toml"
        content = examples[damaged]
        for _ in range(generator.randint(1, 3)):
            content = damage(generator, content, examples[generator.choice(list(examples))])
        (tmp_path / "examples" / damaged).write_bytes(content)
        try:
            encoding.check(sojourn.read(path), MEMORY)
        except ScenarioError as error:
            line = str(error)
            assert line.strip(), f"SEED={number}"
            assert not HIDDEN & set(map(unicodedata.category, line)), f"SEED={number}: {line!r}"
            lines.add(line)
        except BaseException:
            pytest.fail(f"SEED={number}: {damaged} is {content!r}")
        finally:
            (tmp_path / "examples" / damaged).write_bytes(examples[damaged])
    assert len(lines) > COUNT / 5
