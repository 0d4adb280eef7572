"""Proposals: which parameters a search tries next, by Optuna, and what it has learnt on disk.

Optuna is an optional extra, and this is all that is left to it: to propose values by a
tree-structured Parzen estimator ([bergstra11]), to keep trials in a file, and to say which
parameters matter.
"""

import contextlib
import importlib.util
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sojourn._core import ScenarioError
from sojourn.base.errors import FileError
from sojourn.tune.ranges import Choice, Parameter
from sojourn.tune.trials import REFUSED, Trial, Tuned

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

FEW = 20
"""Of fewer trials it is not told how much each parameter matters: that would be chance."""

NOTES = ("number", "at", "measured", "ended", "why", "at_least")
"""What is kept of a trial beside what Optuna knows of it."""


def check_installed() -> None:
    """Raise `ScenarioError` if the optional extra is missing."""
    if importlib.util.find_spec("optuna") is None:
        raise ScenarioError("tuning needs the extra `tune`: pip install 'sojourn[tune]'")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from telling of each trial, and warning of what is new in it."""
    import optuna  # noqa: PLC0415 - an optional extra, and slow to load

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def asked(so_far: Tuned, count: int) -> list[Mapping[str, Any]]:
    """Return where the next trials are, as `Trial.places`: the same for the same trials so far."""
    import optuna  # noqa: PLC0415

    with _quiet():
        # The number of trials is the seed: no batch has the chances of one before it.
        sampler = optuna.samplers.TPESampler(
            seed=len(so_far.done), multivariate=True, constant_liar=True
        )
        study = optuna.create_study(sampler=sampler, directions=_directions(so_far))
        study.add_trials(_known(so_far))
        space = {one.path: _distribution(one) for one in so_far.space}
        return [study.ask(space).params for _ in range(count)]


def importances(so_far: Tuned) -> dict[str, dict[str, float]]:
    """Return by goal which share of being in the better half is due to each parameter (PED-ANOVA).

    Empty with a single parameter, or with few trials.
    """
    import optuna  # noqa: PLC0415

    with _quiet():
        known = _known(so_far)
        if len(so_far.space) < 2 or len(known) < FEW:
            return {}
        study = optuna.create_study(directions=_directions(so_far))
        study.add_trials(known)
        # Of the usual best tenth a few trials decide, which lie where the search has been most.
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.5)
        return {
            goal.measure.text: optuna.importance.get_param_importances(
                study, evaluator=evaluator, target=_value(place, -1 if goal.maximise else 1)
            )
            for place, goal in enumerate(so_far.goals)
        }


def _value(place: int, sign: int) -> Any:
    return lambda trial: sign * trial.values[place]


class Journal:
    """The trials of a search on disk, in a file that may hold other searches beside it."""

    def __init__(self, file: Path, name: str, so_far: Tuned, *, again: bool = False) -> None:
        """Open the search of this name, or begin it, perhaps `again`."""
        import optuna  # noqa: PLC0415
        from optuna.storages import JournalStorage  # noqa: PLC0415
        from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415

        self._file = file
        with _quiet(), self._told():
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
        """Return the trials that are over, in order."""
        found: dict[int, Trial] = {}
        with self._told():
            for one in self._study.get_trials(deepcopy=False):
                noted = {name: one.user_attrs[name] for name in NOTES}
                # If two commands search the same at once, each adds the same trials.
                found.setdefault(noted["number"], Trial(places=dict(one.params), **noted))
        return tuple(found[number] for number in sorted(found))

    def add(self, trial: Trial, so_far: Tuned) -> None:
        """Keep one more trial."""
        with _quiet(), self._told():
            self._study.add_trial(_frozen(trial, so_far))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Name the file in what goes wrong with it."""
        try:
            yield
        except OSError as error:
            raise FileError(f"{self._file}: cannot be used: {error.strerror}") from None
        except (AssertionError, KeyError, TypeError, ValueError):
            message = "is not what a search wrote; remove it, or give another `--out`"
            raise FileError(f"{self._file}: {message}") from None


def _drop_torn_line(file: Path) -> None:
    """Cut off what a full disk, or an end in the middle of writing, has left of a last line."""
    if file.exists():
        content = file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            file.write_bytes(whole)


def _known(so_far: Tuned) -> "list[FrozenTrial]":
    """Return what can be learnt from: trials within the ranges that were run."""
    return [
        _frozen(trial, so_far) for trial in so_far.done if trial.places and trial.ended != REFUSED
    ]


def _frozen(trial: Trial, so_far: Tuned) -> "FrozenTrial":
    """Return a trial as Optuna knows it."""
    from optuna.trial import TrialState, create_trial  # noqa: PLC0415

    is_run = trial.ended != REFUSED
    space = {one.path: _distribution(one) for one in so_far.space} if trial.places else {}
    return create_trial(
        state=TrialState.COMPLETE if is_run else TrialState.FAIL,
        values=[so_far.value(trial, goal) for goal in so_far.goals] if is_run else None,
        params=dict(trial.places),
        distributions=space,
        constraints=so_far.excess(trial) if is_run else {},
        user_attrs={name: getattr(trial, name) for name in NOTES},
    )


def _directions(so_far: Tuned) -> "list[Literal['minimize', 'maximize']]":
    return ["maximize" if goal.maximise else "minimize" for goal in so_far.goals]


def _distribution(parameter: Parameter) -> "BaseDistribution":
    """Return where Optuna looks."""
    from optuna import distributions  # noqa: PLC0415

    if isinstance(parameter, Choice):
        return distributions.CategoricalDistribution(parameter.names)
    low, high, log = parameter.low, parameter.high, parameter.log
    if parameter.whole:
        return distributions.IntDistribution(int(low), int(high), log=log)
    return distributions.FloatDistribution(low, high, log=log)
