"""Samples that are added until the intervals of percentiles are narrow."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn
from conftest import FOLDABLE
from sojourn import ScenarioError
from sojourn.analysis.paired import ratios
from sojourn.compare.comparison import compare
from sojourn.runs import answers
from sojourn.scale.errors import widest_p99
from sojourn.scale.sample import Samples
from sojourn.scenario import fidelity
from sojourn.show.fidelity import fidelity_lines

SAMPLE = {"kind": "sample", "hosts": 64}


def answer_of(precision: str, **parameters: Any) -> sojourn.Result:
    table = SAMPLE | {"precision": precision} | parameters
    return sojourn.run(FOLDABLE | {"fidelity": table})


def test_samples_are_added_until_the_precision_is_reached() -> None:
    answer = answer_of("8%")
    summary = answer.summary["fidelity"]
    precision, seeds = summary["precision"], summary["seeds"]
    assert precision["reached"] <= precision["required"] == 0.08
    assert seeds == [300 + number for number in range(len(seeds))]
    assert answer.flows["sample"].n_unique() == len(seeds) > 2
    # It is the first round with this precision.
    fewer = answer_of("8%", max_samples=len(seeds) - 1).summary["fidelity"]
    assert fewer["precision"]["reached"] > 0.08
    line = f"from {len(seeds)} samples, ± 8 % required"
    assert any(line in each for each in fidelity_lines([answer]))


def test_at_the_maximum_the_answer_states_how_many_samples_it_would_take() -> None:
    answer = answer_of("1%", max_samples=4)
    fidelity = answer.summary["fidelity"]
    precision = fidelity["precision"]
    assert len(fidelity["seeds"]) == 4
    assert precision["needed"] == math.ceil(4 * (precision["reached"] / 0.01) ** 2)
    line = f"from 4 samples, not the ± 1 % required: takes about {precision['needed']}"
    assert any(line in each for each in fidelity_lines([answer]))


def test_compared_schemes_have_the_same_samples() -> None:
    base = FOLDABLE | {"fidelity": SAMPLE | {"precision": "10%"}}
    _, runs = compare(base, {"transport": ["dctcp", "swift", "timely"]}, seeds=1)
    seeds = [run.result.summary["fidelity"]["seeds"] for run in runs]
    assert seeds[0] == seeds[1] == seeds[2]
    assert ratios(runs, by="transport")["same_flows"].all()
    reached = [run.result.summary["fidelity"]["precision"]["reached"] for run in runs]
    assert max(reached) <= 0.1
    # The widest of the three decides, and alone the others would have fewer samples.
    alone = sojourn.run(base | {"transport": "swift"}).summary["fidelity"]["seeds"]
    assert len(alone) < len(seeds[0])


def test_an_interrupted_answer_continues_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entries() -> int:
        return len([entry for entry in tmp_path.iterdir() if entry.is_dir()])

    scenario = FOLDABLE | {"fidelity": SAMPLE | {"precision": "1%", "max_samples": 6}}
    add_samples, rounds = answers.add_samples, []

    def interrupted(*given: Any) -> None:
        rounds.append(given)
        if len(rounds) == 2:
            raise KeyboardInterrupt
        add_samples(*given)

    with monkeypatch.context() as patch:
        patch.setattr(answers, "add_samples", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sojourn.run(scenario, cache=tmp_path)
    assert entries() == 4
    answer = sojourn.run(scenario, cache=tmp_path)
    assert entries() == 6
    assert answer.flows.equals(sojourn.run(scenario).flows)


def test_networks_of_half_the_size_have_as_many_samples() -> None:
    table = {"kind": "sample", "hosts": 128, "check": True, "precision": "1%", "max_samples": 3}
    answer = sojourn.run(FOLDABLE | {"fidelity": table})
    unchecked = sojourn.run(FOLDABLE | {"fidelity": table | {"check": False}})
    assert answer.flows.equals(unchecked.flows)
    assert answer.summary["fidelity"]["half"]["kept"] == 64


def test_large_networks_are_checked_with_half_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(**parameters: Any) -> Samples | None:
        return Samples(FOLDABLE, fidelity.read(SAMPLE | {"hosts": 128} | parameters)).half()

    assert half() is None
    monkeypatch.setattr("sojourn.scale.sample.CHECKED_HOSTS", 192)
    found = half()
    assert found is not None
    assert found.folded.kept == 64
    # Half of 64 hosts is less than the smallest fold.
    assert half(hosts=64) is None
    assert half(check=False) is None
    advice = r"fidelity\.check: uses half of the 64 hosts, .* set `hosts` to 128"
    with pytest.raises(ScenarioError, match=advice):
        half(hosts=64, check=True)


@pytest.mark.parametrize("samples", [2, 7, 15, 40])
def test_the_interval_covers_the_percentile(samples: int) -> None:
    truth, covered, trials = math.log(100), 0.0, 200
    random = np.random.default_rng(1)
    for _ in range(trials):
        values = random.exponential(size=(samples, 12_000 // samples))
        sizes = np.full(values.shape[1], 1e3)
        width = widest_p99([(sizes, sample) for sample in values])["half_width"]
        p99 = np.quantile(values, 0.99)
        covered += float(abs(p99 - truth) <= width * p99)
    assert 0.9 <= covered / trials <= 1


def test_the_widest_interval_is_that_of_a_size() -> None:
    random = np.random.default_rng(1)
    sizes = np.repeat([1e3, 2e4, 2e5], [5000, 5000, 900])
    slowdowns = np.concatenate([np.full(5000, 9.0), random.exponential(size=5900)])
    shuffled = random.permutation(len(sizes))
    sizes, slowdowns = sizes[shuffled], slowdowns[shuffled]
    row = widest_p99([(sizes, slowdowns)])
    # Sizes above 100 KB have too few flows.
    assert (row["above"], row["up_to"]) == (1e4, 1e5)
    assert widest_p99([(sizes[:900], slowdowns[:900])])["half_width"] == math.inf
    slowdowns[:200] = math.inf
    assert widest_p99([(sizes, slowdowns)])["half_width"] == math.inf


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (SAMPLE | {"precision": "500%"}, "must be a percentage above 0 % and below 100 %"),
        (SAMPLE | {"precision": "5 percent"}, "such as 5%, not 5 percent"),
        (SAMPLE | {"precision": 5}, "not 5$"),
        (SAMPLE | {"precisio": "5%"}, "did you mean `precision`"),
        (SAMPLE | {"precision": "5%", "samples": 40}, "40 are more than max_samples, 32"),
        ({"kind": "flows", "precision": "5%"}, "fidelity.precision: unknown field; flows has kind"),
        ({"kind": "auto", "precision": "5%"}, "fidelity.precision: unknown field; auto has kind"),
    ],
)
def test_an_invalid_precision_is_an_error_of_the_field(table: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        sojourn.run(FOLDABLE | {"fidelity": table})


def test_a_precision_is_a_percentage_or_a_share() -> None:
    for text in ("5%", "5 %", "5.0%", 0.05):
        assert fidelity.read(SAMPLE | {"precision": text}).precision == 0.05
    # The table that a result stores is valid again.
    chosen = fidelity.read(SAMPLE | {"precision": "5%"})
    assert fidelity.read(chosen.as_table()) == chosen
