//! Timers that go off with the ticks of a clock, as those of a kernel do.

use crate::base::units::{Duration, Time};

/// When a timer goes off that is set to `wait` at `from`, by a clock of period `tick` that began at zero, or
/// by an exact one if that is zero.
///
/// As Linux's timer wheel has it (`kernel/time/timer.c`): with the first tick after it is due, so that it is
/// never early; but timers of 63 ticks and more only with each 8th, of 504 and more with each 64th, and so
/// on.
pub fn end(from: Time, wait: Duration, tick: Duration) -> Time {
    if tick == Duration::ZERO {
        return from + wait;
    }
    let ticks = wait.0.div_ceil(tick.0);
    let due = from.0 / tick.0 + ticks;
    let mut each = 1;
    while ticks >= 63 * each && each < MOST {
        each *= 8;
    }
    Time((due / each + 1).saturating_mul(each).saturating_mul(tick.0))
}

/// The wheel's last level but one: beyond it nothing is coarser.
const MOST: u64 = 8_u64.pow(8);

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn end_at(from: Duration, wait: Duration) -> Duration {
        end(Time::ZERO + from, wait, us(4_000)).since(Time::ZERO)
    }

    #[test]
    fn it_goes_off_with_the_first_tick_after_it_is_due() {
        assert_eq!(end_at(us(0), us(200_000)), us(204_000));
        assert_eq!(end_at(us(3_999), us(200_000)), us(204_000));
        assert_eq!(end_at(us(4_000), us(200_001)), us(212_000));
    }

    #[test]
    fn long_ones_are_coarser() {
        assert_eq!(end_at(us(0), us(62 * 4_000)), us(63 * 4_000));
        assert_eq!(end_at(us(0), us(63 * 4_000)), us(64 * 4_000));
        // Linux's SYN, measured: sent again after 1008 ms (validation/linux).
        assert_eq!(end_at(us(0), us(1_000_000)), us(1_024_000));
        assert_eq!(end_at(us(5 * 4_000), us(1_000_000)), us(1_024_000));
        assert_eq!(end_at(us(0), us(504 * 4_000)), us(512 * 4_000));
    }

    #[test]
    fn an_exact_clock_has_no_ticks_and_no_end_overflows() {
        let from = Time::ZERO + us(17);
        assert_eq!(end(from, us(5), Duration::ZERO), Time::ZERO + us(22));
        assert!(end(Time(1), Duration(u64::MAX / 2), us(4_000)) >= Time(u64::MAX / 2));
    }
}
