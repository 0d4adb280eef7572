"""Fictitious paper for tests of figures."""

from conftest import SCENARIO
from sojourn import Paper

paper = Paper(
    key="tiny",
    citation="A. Author, A Tiny Study of Queues, 2020",
    setup="A dumbbell with flows of one size.",
    deviations=("The network is smaller.",),
)

base = SCENARIO

schemes = {"DCTCP": {"transport": "dctcp"}, "Alone": {"model": "alone"}}
