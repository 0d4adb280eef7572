"""Traces made by models: how the rate of a cellular link may change, for `rate_trace`."""

import math
import random

from sojourn._core import ScenarioError

TICK_S = 0.02
"""How often the rate moves."""


def cellular(
    seconds: float = 60,
    *,
    seed: int = 1,
    most: float = 1000,
    volatility: float = 200,
    escapes: float = 1,
) -> str:
    """Return a trace of a cellular link in Mahimahi's format, by the model of Sprout [sprout13].

    Packets of 1500 B may be delivered as a Poisson process has it, whose rate does a Brownian
    motion between nothing and the most, a step each 20 ms. A link whose rate is nothing is out, and
    stays so for a time that is exponential. In the beginning every rate is as likely. The defaults
    are the paper's as we recall them; it forecasts by this model and makes no traces of it. With
    them a link is out a third of the time in the mean, which fewer changes (`volatility`) or
    shorter outages (`escapes`) make less.

    Each line is the millisecond at which a packet may be delivered. The last one ends the trace,
    which Mahimahi and `rate_trace` then begin again: one that ends with an outage is shorter than
    asked for. The same arguments give the same trace.

    Args:
        seconds: how long it lasts; up to ten million packets at the largest rate.
        seed: of the random numbers.
        most: the largest rate, in packets a second; 1000 are 12 Mb/s.
        volatility: the standard deviation of the rate's change in a second, in packets a second.
        escapes: how often an outage would end in a second; its mean length is the inverse.

    Raises:
        ScenarioError: for an argument that is out of its range, or if nothing can be delivered.

    """
    _check("most", most, 1e6)
    _check("seconds", seconds, 1e7 / most)
    _check("volatility", volatility, 1e6)
    _check("escapes", escapes, 1e6)
    # Of the generator only `random` is promised to stay as it is.
    uniform = random.Random(seed).random
    ends_in_tick = -math.expm1(-escapes * TICK_S)
    rate, done, due, lines = most * uniform(), 0.0, _exponential(uniform()), []
    for tick in range(math.ceil(seconds / TICK_S)):
        expected = rate * TICK_S
        # A Poisson process of rate one, whose time runs as fast as packets are expected.
        while due <= done + expected:
            moment = TICK_S * (tick + (due - done) / expected)
            if moment <= seconds:
                lines.append(f"{math.ceil(1000 * moment)}\n")
            due += _exponential(uniform())
        done += expected
        change = volatility * math.sqrt(TICK_S) * _normal(uniform(), uniform())
        if rate > 0:
            rate = min(max(rate + change, 0.0), most)
        elif uniform() < ends_in_tick:
            rate = min(abs(change), most)
    if not lines:
        raise ScenarioError(f"seconds: nothing can be delivered within {seconds:g} s; ask for more")
    return "".join(lines)


def _check(name: str, value: float, largest: float) -> None:
    if not 0 < value <= largest:
        raise ScenarioError(f"{name}: must be more than 0 and up to {largest:g}, not {value:g}")


def _exponential(uniform: float) -> float:
    return -math.log1p(-uniform)


def _normal(uniform: float, other: float) -> float:
    """Return a number from the standard normal distribution, by Box and Muller."""
    return math.sqrt(2 * _exponential(uniform)) * math.cos(math.tau * other)
