"""Formatting of quantities: three digits, and a unit in which they need no exponent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.base import units

FORMATS = (units.format_time, units.format_size, units.format_memory, units.format_bit_rate)


@given(st.floats(0, 1e15))
def test_no_quantity_is_printed_with_a_positive_exponent(value: float) -> None:
    for formatted in FORMATS:
        assert "e+" not in formatted(value)
        assert "e+" not in formatted(-value)


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (units.format_time(0.9994), "999 ms"),
        (units.format_time(0.9997), "1 s"),
        (units.format_time(-0.9997), "-1 s"),
        (units.format_time(0.9999e-6), "1 µs"),
        (units.format_time(0), "0 ns"),
        (units.format_time(1234.4), "1234 s"),
        (units.format_size(12.4), "12 B"),
        (units.format_size(999.7), "1 KB"),
        (units.format_size(999_700), "1 MB"),
        (units.format_size(2_000e9), "2000 GB"),
        (units.format_memory(400), "0.4 KB"),
        (units.format_memory(999.7e6), "1 GB"),
        (units.format_memory(1_500e12), "1500 TB"),
        (units.format_bit_rate(999.7e6), "1 Gb/s"),
        (units.format_bit_rate(999.7e9), "1000 Gb/s"),
    ],
)
def test_a_value_moves_to_the_next_unit_when_it_is_rounded_to_1000(
    formatted: str, expected: str
) -> None:
    assert formatted == expected
