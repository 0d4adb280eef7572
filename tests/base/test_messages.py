"""Tests of the wording of errors."""

import pytest

from sojourn.base.messages import install_command


@pytest.mark.parametrize(
    ("extra", "packages"),
    [("tune", ["optuna"]), ("cluster", ["distributed"]), ("rl", ["gymnasium", "pettingzoo"])],
)
def test_the_command_for_an_extra_installs_its_packages(extra: str, packages: list[str]) -> None:
    begin, *names = install_command(extra).split(" '")
    assert begin == "pip install"
    assert [name.partition(">")[0] for name in names] == packages
