//! Expiry of timers that are driven by clock ticks, as in a kernel.

use crate::base::units::{Duration, Time};

/// Returns when a timer expires that is armed at `from` for `wait`. The clock ticks with period `tick`
/// from time zero; a period of zero means an exact clock.
///
/// Follows Linux's timer wheel (`kernel/time/timer.c`): a timer expires with the first tick after its
/// due time, so never early. Timers of 63 ticks and more expire only with every 8th tick, timers of
/// 504 and more with every 64th, and so on.
pub fn expiry(from: Time, wait: Duration, tick: Duration) -> Time {
    if tick == Duration::ZERO {
        return from + wait;
    }
    let ticks = wait.0.div_ceil(tick.0);
    let due = from.0 / tick.0 + ticks;
    let mut granularity = 1;
    while ticks >= 63 * granularity && granularity < MAX_GRANULARITY {
        granularity *= 8;
    }
    Time((due / granularity + 1).saturating_mul(granularity).saturating_mul(tick.0))
}

/// Granularity of the coarsest level of the wheel, in ticks.
const MAX_GRANULARITY: u64 = 8_u64.pow(8);

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn expires_at(from: Duration, wait: Duration) -> Duration {
        expiry(Time::ZERO + from, wait, us(4_000)).since(Time::ZERO)
    }

    #[test]
    fn expires_with_the_first_tick_after_the_due_time() {
        assert_eq!(expires_at(us(0), us(200_000)), us(204_000));
        assert_eq!(expires_at(us(3_999), us(200_000)), us(204_000));
        assert_eq!(expires_at(us(4_000), us(200_001)), us(212_000));
    }

    #[test]
    fn long_timers_are_coarser() {
        assert_eq!(expires_at(us(0), us(62 * 4_000)), us(63 * 4_000));
        assert_eq!(expires_at(us(0), us(63 * 4_000)), us(64 * 4_000));
        // Measured with Linux: a SYN is retransmitted after 1008 ms (validation/linux).
        assert_eq!(expires_at(us(0), us(1_000_000)), us(1_024_000));
        assert_eq!(expires_at(us(5 * 4_000), us(1_000_000)), us(1_024_000));
        assert_eq!(expires_at(us(0), us(504 * 4_000)), us(512 * 4_000));
    }

    #[test]
    fn an_exact_clock_has_no_ticks_and_expiries_do_not_overflow() {
        let from = Time::ZERO + us(17);
        assert_eq!(expiry(from, us(5), Duration::ZERO), Time::ZERO + us(22));
        assert!(expiry(Time(1), Duration(u64::MAX / 2), us(4_000)) >= Time(u64::MAX / 2));
    }
}
