//! The account of a sending: what let it go, and not earlier (docs/design.md, "Accounts").

use std::collections::VecDeque;

use super::pacing::PacingLimit;
use super::sender::{Segment, Sender};
use crate::base::units::{Duration, Time};
use crate::breakdown::chain::{Chain, Piece};
use crate::breakdown::pool::{BreakdownRef, Pool};
use crate::breakdown::{Arrival, Finish, Journey, Opening, WaitReason};
use crate::transport::Allowance;

/// Keeps the account of one sender.
#[derive(Debug)]
pub struct SenderBreakdown {
    start: Time,
    /// How the flow was opened, once it was.
    opening: Option<Box<Opening>>,
    /// The account of what would be sent at `since`: shared by all that one ACK lets go.
    account: BreakdownRef,
    since: Time,
    /// Whether the window holds back what is next in line; otherwise its pace does, if anything.
    is_full: bool,
    /// What was known of its pace when that was last looked at.
    pace: PacingLimit,
    /// The number of the port that was last sent to, and how long it had been paused by then, or when that
    /// was last looked at.
    port: (u32, Duration),
    /// Of each segment that is not acknowledged when it was last sent, and the account of that.
    sent: VecDeque<(Time, BreakdownRef)>,
    /// The first of them.
    first: u32,
    /// The pieces of its chain, if somebody asks about this flow.
    chain: Option<Chain>,
}

impl SenderBreakdown {
    /// That of a flow which starts now, and whether its chain is kept too.
    pub fn new(now: Time, keeps_chain: bool) -> Self {
        Self {
            start: now,
            opening: None,
            account: BreakdownRef::default(),
            since: now,
            is_full: false,
            pace: PacingLimit::default(),
            port: (u32::MAX, Duration::ZERO),
            sent: VecDeque::new(),
            first: 0,
            chain: keeps_chain.then(Chain::default),
        }
    }

    /// The chain of the packet that completed the flow, if it was kept.
    pub fn chain(&self, finish: &Finish) -> Option<Vec<Piece>> {
        self.chain.as_ref().map(|chain| chain.of(&self.opening(), finish))
    }

    /// How the flow was opened.
    pub fn opening(&self) -> Opening {
        self.opening.as_deref().copied().unwrap_or_default()
    }

    /// The number of the port that was last sent to.
    pub fn port(&self) -> u32 {
        self.port.0
    }

    /// Whether what a sender may do now may follow from what has just come.
    pub fn asks(&self, sender: &Sender, allowance: Allowance) -> bool {
        sender.is_open() && (self.opening.is_none() || self.is_full && sender.has_data(allowance))
    }

    /// Looks at what the sender may do now, with what an ACK or a handshake's answer carried that `came`, if
    /// one has just and it [asks](Self::asks), and how long its host's port has been `paused` in all.
    pub fn look(
        &mut self,
        now: Time,
        sender: &Sender,
        allowance: Allowance,
        came: Option<Arrival>,
        paused: Duration,
        accounts: &mut Pool,
    ) {
        if !sender.is_open() {
            return;
        }
        // First, so that the account may be written on which then nobody else has.
        while self.first < sender.cumulative()
            && let Some((_, account)) = self.sent.pop_front()
        {
            accounts.release(account);
            self.first += 1;
        }
        let lately = paused - std::mem::replace(&mut self.port.1, paused);
        if self.opening.is_none() {
            self.open(now, came, accounts);
        } else if !self.is_full {
            self.hold(now, sender, lately, accounts);
        } else if sender.has_data(allowance) {
            self.is_full = false;
            match came {
                Some(arrival) => self.follow(arrival, accounts),
                // Only a probe for a lost tail goes whatever the window.
                None if sender.is_tail_probe_due() => {
                    self.hold_back(WaitReason::Timeout, now - self.since, accounts);
                }
                None => self.hold_back(WaitReason::Rate, now - self.since, accounts),
            }
            self.since = now;
        }
    }

    /// What is next in line follows from an ACK.
    fn follow(&mut self, Arrival { account, journey, receiver }: Arrival, accounts: &mut Pool) {
        accounts.release(std::mem::replace(&mut self.account, account));
        let account = accounts.change(&mut self.account);
        account.add_round(&journey, receiver);
        if let Some(chain) = &mut self.chain {
            chain.add_round(account, &journey, receiver);
        }
    }

    fn open(&mut self, now: Time, came: Option<Arrival>, accounts: &mut Pool) {
        let mut journey = Journey::NONE;
        if let Some(arrival) = came {
            journey = arrival.journey;
            accounts.release(arrival.account);
        }
        let sender = Duration((now - self.start).0 - journey.total().0);
        self.opening = Some(Box::new(Opening { journey, sender }));
        self.since = now;
    }

    /// Since it was last looked at its pace has held back what is next, if anything has: by the clock and by
    /// the host's port, which was `paused` so long. Of two that did the one that ceased last comes last.
    fn hold(&mut self, now: Time, sender: &Sender, paused: Duration, accounts: &mut Pool) {
        let until = |ceased: Time| ceased.min(now).max(self.since);
        let PacingLimit { earliest, waits_for_nic } = self.pace;
        let free = if waits_for_nic { sender.pacer.nic_free() } else { Time::ZERO };
        if free <= earliest {
            let ceased = until(free);
            self.await_turn(ceased - self.since, paused, accounts);
            self.hold_back(WaitReason::Rate, now - ceased, accounts);
        } else {
            let ceased = until(earliest);
            self.hold_back(WaitReason::Rate, ceased - self.since, accounts);
            self.await_turn(now - ceased, paused, accounts);
        }
        self.since = now;
    }

    /// The host's port had to send first, and could not while it was `paused`.
    fn await_turn(&mut self, lasted: Duration, paused: Duration, accounts: &mut Pool) {
        let paused = paused.min(lasted);
        self.hold_back(WaitReason::Paused, paused, accounts);
        self.hold_back(WaitReason::Turn, lasted - paused, accounts);
    }

    fn hold_back(&mut self, why: WaitReason, lasted: Duration, accounts: &mut Pool) {
        hold(&mut self.account, &mut self.chain, why, lasted, accounts);
    }

    /// The account of a segment that is sent now, to the port of this number, which has been paused so long.
    /// If it has been sent before, what came after that is recovery: from a time-out that is being recovered
    /// from, or else from what ACKs told.
    pub fn send(
        &mut self,
        now: Time,
        segment: Segment,
        timed_out: bool,
        port: (u32, Duration),
        accounts: &mut Pool,
    ) -> BreakdownRef {
        self.port = port;
        let place = (segment.sequence - self.first) as usize;
        if segment.is_retransmit {
            let (sent, account) = &mut self.sent[place];
            let why = if timed_out { WaitReason::Timeout } else { WaitReason::Gap };
            hold(account, &mut self.chain, why, now - *sent, accounts);
            *sent = now;
            return accounts.share(account);
        }
        assert!(self.since == now && place == self.sent.len(), "a sending out of turn");
        self.sent.push_back((now, accounts.share(&self.account)));
        accounts.share(&self.account)
    }

    /// Notes what holds back the next segment, after all has been sent that may be.
    pub fn close(&mut self, sender: &Sender, allowance: Allowance) {
        self.is_full = sender.is_open() && !sender.has_data(allowance);
        self.pace = sender.pacing_limit(allowance);
    }

    /// Gives back all accounts: nothing is left to be sent.
    pub fn release(&mut self, accounts: &mut Pool) {
        accounts.release(std::mem::take(&mut self.account));
        self.sent.drain(..).for_each(|(_, account)| accounts.release(account));
    }
}

/// What an account is of was held back so long.
fn hold(
    account: &mut BreakdownRef,
    chain: &mut Option<Chain>,
    why: WaitReason,
    lasted: Duration,
    accounts: &mut Pool,
) {
    if lasted == Duration::ZERO {
        return;
    }
    let account = accounts.change(account);
    account.hold(why, lasted);
    if let Some(chain) = chain {
        chain.hold(account, why, lasted);
    }
}
