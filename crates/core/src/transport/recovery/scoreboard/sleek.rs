//! Loss detection by the number of segments beyond the first gap
//! ([`Sleek`](crate::transport::recovery::sleek::Sleek)).

use super::{RecoveryState, Scoreboard};
use crate::base::units::Time;
use crate::transport::recovery::sleek::Bounds;

impl Scoreboard {
    /// Detects losses after an ACK. A recovery begins if the receiver holds enough segments beyond the first
    /// gap, or with the answer to a probe that found a short queue (`has_probed_loss`). The segments of a
    /// window from the first gap on that were sent before the recovery are then lost, each once, and sent
    /// again regardless of the window.
    pub fn detect_losses_by_count(&mut self, bounds: &Bounds, has_probed_loss: bool) {
        let received = self.received.unwrap_or_default().max(self.cumulative);
        let has_count = received - self.cumulative >= bounds.reordered && self.lost.is_empty();
        if has_probed_loss {
            self.gaps_checked = self.cumulative;
        }
        if has_probed_loss || self.state == RecoveryState::Open && has_count {
            self.state = RecoveryState::Recovery;
            self.recovery_point = self.highest;
        }
        self.retransmits_all = self.state == RecoveryState::Recovery;
        self.retransmits_now = self.retransmits_all;
        if self.retransmits_all {
            let from = self.gaps_checked.max(self.cumulative);
            let to = self.recovery_point.min(self.cumulative.saturating_add(bounds.window));
            if from < to {
                self.mark_lost(from, to);
                if has_probed_loss {
                    self.note_all_timed_out();
                }
                self.gaps_checked = to;
                self.update_segment_timers();
            }
        }
    }

    /// Handles the timeout of the segment that has been in flight for the longest time, during recovery: its
    /// timer restarts, and if it was sent again before, the next ACK declares it lost again.
    pub fn restart_segment_timer(&mut self, now: Time) {
        let Some(timers) = &mut self.segment_timers else { return };
        if let Some((_, sequence)) = timers.oldest() {
            self.gaps_checked = self.gaps_checked.min(sequence);
            timers.on_sent(sequence, now);
            self.update_segment_timers();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Duration;
    use crate::transport::Reliability;

    const BOUNDS: Bounds = Bounds {
        reordered: 5,
        window: 4,
        base_rtt: Duration::from_micros(10),
        delay: Duration::from_micros(10),
    };

    const NONE: [u32; 0] = [];

    /// Scoreboard of 100 segments, of which 20 were sent, one each microsecond.
    fn board() -> Scoreboard {
        let reliability = Reliability { duplicate_acks: None, ..Reliability::selective_repeat() };
        let mut board = Scoreboard::new(100, &reliability);
        board.count_received();
        (0..20).for_each(|segment| _ = board.on_sent(segment, Time(u64::from(segment))));
        board
    }

    /// Handles an ACK of the segments before `cumulative` and of those in `block`.
    fn acknowledge(board: &mut Scoreboard, cumulative: u32, block: (u32, u32), received: u16) {
        board.on_report(received);
        board.on_ack(cumulative, &[block], Time(99), Time::NEVER);
        board.detect_losses_by_count(&BOUNDS, false);
    }

    /// Sends all lost segments that may leave now.
    fn send_lost(board: &mut Scoreboard) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some((segment, true)) = board.candidate() {
            board.on_sent(segment, Time(100));
            sent.push(segment);
        }
        sent
    }

    #[test]
    fn segments_beyond_a_gap_reveal_losses_within_a_window_from_it() {
        let mut board = board();
        acknowledge(&mut board, 2, (3, 7), 6);
        assert_eq!(send_lost(&mut board), NONE, "four segments are reordering");
        acknowledge(&mut board, 2, (3, 8), 7);
        // Of the window 2 to 5 only segment 2 is missing.
        assert_eq!(send_lost(&mut board), [2]);
        acknowledge(&mut board, 2, (3, 9), 8);
        assert_eq!(send_lost(&mut board), NONE, "each segment is sent again once");
        acknowledge(&mut board, 9, (0, 0), 9);
        assert_eq!(send_lost(&mut board), [9, 10, 11, 12]);
        assert_eq!(board.in_flight(), 11, "20 sent, 9 received");
        acknowledge(&mut board, 20, (0, 0), 20);
        assert!(!board.is_recovering());
        assert_eq!(board.candidate(), Some((20, false)), "new data within the window");
    }

    #[test]
    fn the_answer_to_a_probe_reveals_losses_again() {
        let mut board = board();
        board.detect_losses_by_count(&BOUNDS, true);
        assert_eq!(send_lost(&mut board), [0, 1, 2, 3]);
        acknowledge(&mut board, 0, (0, 0), 0);
        assert_eq!(send_lost(&mut board), NONE);
        board.detect_losses_by_count(&BOUNDS, true);
        assert_eq!(send_lost(&mut board), [0, 1, 2, 3]);
    }

    #[test]
    fn in_recovery_a_timeout_restarts_the_timer_and_a_second_loss_is_detected() {
        let mut board = board();
        board.detect_losses_by_count(&BOUNDS, true);
        send_lost(&mut board);
        // Segment 4 was sent first of those in flight; those sent again were sent at 100.
        (4..20).for_each(|segment| {
            assert_eq!(board.oldest_sent_at(), Some(Time(segment)));
            board.restart_segment_timer(Time(200));
        });
        acknowledge(&mut board, 0, (0, 0), 0);
        assert_eq!(send_lost(&mut board), NONE, "never sent again: left to the window");
        assert_eq!(board.oldest_sent_at(), Some(Time(100)));
        board.restart_segment_timer(Time(200));
        acknowledge(&mut board, 0, (0, 0), 0);
        assert_eq!(send_lost(&mut board), [0, 1, 2, 3]);
    }
}
