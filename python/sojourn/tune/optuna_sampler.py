"""Interface to Optuna: proposals of parameters, importances, and the file of trials.

Optuna is an optional extra. It proposes values by a tree-structured Parzen estimator
([bergstra11]), stores trials in a file, and computes the importance of parameters.
"""

import contextlib
import importlib.util
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sojourn._core import ScenarioError
from sojourn.base.errors import FileError
from sojourn.base.messages import install_command
from sojourn.tune.ranges import Choice, Parameter
from sojourn.tune.trials import INVALID, Trial, Tuned

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

MIN_TRIALS = 20
"""Number of trials below which importances would be chance, and are not computed."""

ATTRIBUTES = ("number", "at", "measured", "ended", "why", "at_least")
"""Attributes of a trial in the file in addition to those of Optuna."""


def check_installed() -> None:
    """Raise `ScenarioError` if the optional extra is missing."""
    if importlib.util.find_spec("optuna") is None:
        raise ScenarioError(f"tuning needs Optuna: {install_command('tune')}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's log of each trial and its warnings about experimental features."""
    import optuna  # noqa: PLC0415 - an optional extra, and slow to load

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def propose(so_far: Tuned, count: int) -> list[Mapping[str, Any]]:
    """Return the `Trial.places` of the next trials: a function of the trials so far."""
    import optuna  # noqa: PLC0415

    with _quiet():
        # The number of trials is the seed, so that each batch has other random numbers.
        sampler = optuna.samplers.TPESampler(
            seed=len(so_far.done), multivariate=True, constant_liar=True
        )
        study = optuna.create_study(sampler=sampler, directions=_directions(so_far))
        study.add_trials(_valid_trials(so_far))
        space = {parameter.path: _distribution(parameter) for parameter in so_far.space}
        return [study.ask(space).params for _ in range(count)]


def importances(so_far: Tuned) -> dict[str, dict[str, float]]:
    """Return the importance of each parameter for each goal, by PED-ANOVA.

    The importances of a goal add up to 1: shares of the reasons why a trial is in the better half.
    Return an empty dictionary for a single parameter or less than `MIN_TRIALS` trials.
    """
    import optuna  # noqa: PLC0415

    with _quiet():
        valid_trials = _valid_trials(so_far)
        if len(so_far.space) < 2 or len(valid_trials) < MIN_TRIALS:
            return {}
        study = optuna.create_study(directions=_directions(so_far))
        study.add_trials(valid_trials)
        # The default, the best tenth, contains few trials, mostly where the search sampled densely.
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.5)
        return {
            goal.measure.text: optuna.importance.get_param_importances(
                study, evaluator=evaluator, target=_target(index, -1 if goal.maximise else 1)
            )
            for index, goal in enumerate(so_far.goals)
        }


def _target(index: int, sign: int) -> Any:
    return lambda trial: sign * trial.values[index]


class Journal:
    """Trials of a search in a file, which may also contain other searches."""

    def __init__(self, file: Path, name: str, so_far: Tuned, *, again: bool = False) -> None:
        """Open or create the search of this name; if `again`, discard its earlier trials."""
        import optuna  # noqa: PLC0415
        from optuna.storages import JournalStorage  # noqa: PLC0415
        from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415

        self._file = file
        with _quiet(), self._named_errors():
            file.parent.mkdir(parents=True, exist_ok=True)
            _drop_torn_line(file)
            storage = JournalStorage(JournalFileBackend(str(file)))
            if again and name in optuna.get_all_study_names(storage):
                optuna.delete_study(study_name=name, storage=storage)
            self._study: Study = optuna.create_study(
                storage=storage,
                study_name=name,
                directions=_directions(so_far),
                load_if_exists=True,
            )

    def trials(self) -> tuple[Trial, ...]:
        """Return the finished trials in order of their numbers."""
        trials: dict[int, Trial] = {}
        with self._named_errors():
            for stored in self._study.get_trials(deepcopy=False):
                attributes = {name: stored.user_attrs[name] for name in ATTRIBUTES}
                # Two commands that run the same search at once add the same trials.
                trial = Trial(places=dict(stored.params), **attributes)
                trials.setdefault(trial.number, trial)
        return tuple(trials[number] for number in sorted(trials))

    def add(self, trial: Trial, so_far: Tuned) -> None:
        """Append a trial to the file."""
        with _quiet(), self._named_errors():
            self._study.add_trial(_frozen(trial, so_far))

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn errors of the file into a `FileError` with its name."""
        try:
            yield
        except OSError as error:
            raise FileError(f"{self._file}: cannot be used: {error.strerror}") from None
        except (AssertionError, KeyError, TypeError, ValueError):
            message = "not a journal of a search; remove the file, or change `--out`"
            raise FileError(f"{self._file}: {message}") from None


def _drop_torn_line(file: Path) -> None:
    """Truncate an incomplete last line, which a full disk or a killed process leaves."""
    if file.exists():
        content = file.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:
            file.write_bytes(complete)


def _valid_trials(so_far: Tuned) -> "list[FrozenTrial]":
    """Return the valid trials within the ranges."""
    return [
        _frozen(trial, so_far) for trial in so_far.done if trial.places and trial.ended != INVALID
    ]


def _frozen(trial: Trial, so_far: Tuned) -> "FrozenTrial":
    """Return a trial in Optuna's form."""
    from optuna.trial import TrialState, create_trial  # noqa: PLC0415

    is_valid = trial.ended != INVALID
    space = (
        {parameter.path: _distribution(parameter) for parameter in so_far.space}
        if trial.places
        else {}
    )
    return create_trial(
        state=TrialState.COMPLETE if is_valid else TrialState.FAIL,
        values=[so_far.value(trial, goal) for goal in so_far.goals] if is_valid else None,
        params=dict(trial.places),
        distributions=space,
        constraints=so_far.excess(trial) if is_valid else {},
        user_attrs={name: getattr(trial, name) for name in ATTRIBUTES},
    )


def _directions(so_far: Tuned) -> "list[Literal['minimize', 'maximize']]":
    return ["maximize" if goal.maximise else "minimize" for goal in so_far.goals]


def _distribution(parameter: Parameter) -> "BaseDistribution":
    """Return the search space of a parameter in Optuna's form."""
    from optuna import distributions  # noqa: PLC0415

    if isinstance(parameter, Choice):
        return distributions.CategoricalDistribution(parameter.names)
    low, high, log = parameter.low, parameter.high, parameter.log
    if parameter.whole:
        return distributions.IntDistribution(int(low), int(high), log=log)
    return distributions.FloatDistribution(low, high, log=log)
