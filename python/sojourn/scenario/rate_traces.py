"""Generated rate traces of links, for the field `rate_trace`."""

import math
import random

from sojourn._core import ScenarioError

TICK_S = 0.02
"""Interval between changes of the rate [sprout13]."""


def cellular(
    seconds: float = 60,
    *,
    seed: int = 1,
    most: float = 1000,
    volatility: float = 200,
    escapes: float = 1,
) -> str:
    """Return a trace of a cellular link in Mahimahi's format, by the model of Sprout [sprout13].

    Delivery opportunities of packets of 1500 B are a Poisson process. Its rate follows a Brownian
    motion between 0 and `most`, in steps of 20 ms, from a uniformly distributed start. A link whose
    rate reaches 0 has an outage of exponentially distributed length. The defaults are those of the
    paper (from memory), which uses the model for forecasts, not for traces. With the defaults the
    link is out for a third of the time on average; a smaller `volatility` or a larger `escapes`
    reduces this share.

    Each line is the millisecond of a delivery opportunity. The last line ends the trace, which
    Mahimahi and `rate_trace` then repeat; a trace that ends with an outage is therefore shorter
    than `seconds`. Equal arguments give equal traces.

    Args:
        seconds: length of the trace, up to ten million packets at the largest rate.
        seed: seed of the random numbers.
        most: largest rate, in packets per second; 1000 are 12 Mb/s.
        volatility: standard deviation of the rate's change in one second, in packets per second.
        escapes: rate at which an outage ends, per second; the inverse of its mean length.

    Raises:
        ScenarioError: for an argument out of range, and for a trace without any delivery.

    """
    _check("most", most, 1e6)
    _check("seconds", seconds, 1e7 / most)
    _check("volatility", volatility, 1e6)
    _check("escapes", escapes, 1e6)
    # Python guarantees a stable sequence across versions for `random` only.
    uniform = random.Random(seed).random
    ends_in_tick = -math.expm1(-escapes * TICK_S)
    rate, elapsed, due, lines = most * uniform(), 0.0, _exponential(uniform()), []
    for tick in range(math.ceil(seconds / TICK_S)):
        expected = rate * TICK_S
        # Unit-rate Poisson process in transformed time: time advances by the expected packets.
        while due <= elapsed + expected:
            moment = TICK_S * (tick + (due - elapsed) / expected)
            if moment <= seconds:
                lines.append(f"{math.ceil(1000 * moment)}\n")
            due += _exponential(uniform())
        elapsed += expected
        change = volatility * math.sqrt(TICK_S) * _normal(uniform(), uniform())
        if rate > 0:
            rate = min(max(rate + change, 0.0), most)
        elif uniform() < ends_in_tick:
            rate = min(abs(change), most)
    if not lines:
        raise ScenarioError(f"seconds: no delivery within {seconds:g} s; give a longer time")
    return "".join(lines)


def _check(name: str, value: float, largest: float) -> None:
    if not 0 < value <= largest:
        raise ScenarioError(f"{name}: must be more than 0 and up to {largest:g}, not {value:g}")


def _exponential(uniform: float) -> float:
    return -math.log1p(-uniform)


def _normal(uniform: float, other: float) -> float:
    """Return a standard normal random number by the Box-Muller transform."""
    return math.sqrt(2 * _exponential(uniform)) * math.cos(math.tau * other)
