"""Broken files: whatever is done to examples and the tables that they name, reading and checking
one ends in a scenario or in one line.

The core's own reader is held to the same by `crates/core/tests/readers.rs`; here files are bytes,
and TOML. `make fuzz-input COUNT=…` draws more of them, from another `SEED`.
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
"""Kinds of signs that move a terminal's cursor, begin a line, or are not seen."""

PIECES = [
    *(b"\0", b"\xff\xfe", b"\xc3", b"\x1b[31m", b"\r", b"\n", b"\t", b"\xef\xbb\xbf", b'"', b"'''"),
    *(b"[", b"]", b"{", b"}", b"[[", b"=", b".", b",", b"#", b"\\", b"\\u0000", b"\\n", b"\\x1b"),
    *(b"[" * 70, b"a." * 70, b"{a=" * 70, b"1979-05-27T07:32:00Z", b"nan", b"-inf", b"true", b""),
    *(b"0", b"-1", b"1e400", b"1e-320", b"9" * 19, b"9" * 5000, b"0x7f", b"1_000", b"18446744 s"),
]


def broken(drawn: random.Random, content: bytes, other: bytes) -> bytes:
    """Break a file: bytes, words, lines, or a piece of another file."""
    start = drawn.randrange(len(content) + 1)
    end = min(len(content), start + drawn.randrange(20))
    head, piece, tail = content[:start], content[start:end], content[end:]
    lines = content.splitlines(keepends=True) or [b""]
    one, two = drawn.randrange(len(lines)), drawn.randrange(len(lines))
    words = content.split(b" ")
    words[drawn.randrange(len(words))] = drawn.choice(PIECES)
    flipped = bytes(byte ^ 1 << drawn.randrange(8) for byte in piece[:1])
    return drawn.choice(
        (
            head,
            head + tail,
            head + piece * drawn.choice((2, 3, 1000)) + tail,
            head + flipped + piece[1:] + tail,
            head + drawn.choice(PIECES) + tail,
            b" ".join(words),
            b"".join([*lines[:one], lines[two], *lines[one:]]),
            head + other[drawn.randrange(len(other)) :],
        )
    )


def test_a_broken_file_is_a_scenario_or_one_line(tmp_path: Path) -> None:
    # But no Python: of what chance makes of a controller nobody knows what it does.
    plain = (file for file in paths.EXAMPLES.iterdir() if file.suffix in (".toml", ".csv"))
    examples = {file.name: file.read_bytes() for file in plain}
    shutil.copytree(paths.EXAMPLES, tmp_path / "examples")
    scenarios = [name for name in examples if name.endswith(".toml")]
    tables = {"own_sizes": ["own_sizes.csv"]}
    tables["replayed_trace"] = ["two_sites.csv", "backup_and_queries.csv"]
    lines = set()
    for number in range(SEED, SEED + COUNT):
        drawn = random.Random(number)
        name = drawn.choice([*tables, *scenarios])
        damaged = drawn.choice(tables.get(name, [name]))
        path = tmp_path / "examples" / f"{name.removesuffix('.toml')}.toml"
        content = examples[damaged]
        for _ in range(drawn.randint(1, 3)):
            content = broken(drawn, content, examples[drawn.choice(list(examples))])
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
