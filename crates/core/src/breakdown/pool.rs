//! Accounts that several hold: the packets which one ACK has let go, and their sender until it knows that
//! they have come.

use std::hint::black_box;

use super::Breakdown;
use super::next_fit::NextFit;

/// A hold of an account in a pool; by default of the empty one, which is not counted. Whoever has it gives
/// it back.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct BreakdownRef(u32);

/// An account in as few lines of memory as it fits.
#[derive(Clone, Default)]
#[repr(align(64))]
struct Entry(Breakdown);

const _: () = assert!(size_of::<Entry>() == 192);

impl Entry {
    /// Brings it into a near cache: each of its lines.
    fn read_ahead(&self) {
        black_box((self.0.window.0[0], self.0.window.0[8], self.0.rounds));
    }
}

/// Accounts, and how many hold each: apart, since an account is not looked at when one of several holders is
/// done, and most are far from a cache.
pub struct Pool {
    places: NextFit,
    /// The first is the empty one, which nobody changes.
    accounts: Vec<Entry>,
    holders: Vec<u32>,
}

impl Default for Pool {
    fn default() -> Self {
        let mut pool = Self { places: NextFit::default(), accounts: vec![], holders: vec![] };
        assert_eq!(pool.add(Breakdown::default()), BreakdownRef::default());
        pool
    }
}

impl Pool {
    /// An account that nobody else holds.
    pub fn add(&mut self, account: Breakdown) -> BreakdownRef {
        let Self { places, accounts, .. } = self;
        let place = places.take(|numbers| {
            accounts.get(numbers).unwrap_or_default().iter().for_each(Entry::read_ahead);
        });
        if place >= self.accounts.len() {
            self.accounts.resize(self.places.end(), Entry::default());
            self.holders.resize(self.places.end(), 0);
        }
        (self.accounts[place].0, self.holders[place]) = (account, 1);
        BreakdownRef(place as u32)
    }

    /// What somebody holds.
    pub fn get(&self, share: &BreakdownRef) -> &Breakdown {
        &self.accounts[share.0 as usize].0
    }

    /// Brings it into a near cache.
    pub fn read_ahead(&self, share: &BreakdownRef) {
        self.accounts[share.0 as usize].read_ahead();
    }

    /// Another holds the same.
    pub fn share(&mut self, share: &BreakdownRef) -> BreakdownRef {
        if *share != BreakdownRef::default() {
            self.holders[share.0 as usize] += 1;
        }
        BreakdownRef(share.0)
    }

    /// What somebody holds, for a change that no other holder sees.
    pub fn change(&mut self, share: &mut BreakdownRef) -> &mut Breakdown {
        if *share == BreakdownRef::default() || self.holders[share.0 as usize] > 1 {
            let own = self.add(*self.get(share));
            self.release(std::mem::replace(share, own));
        }
        &mut self.accounts[share.0 as usize].0
    }

    /// One of its holders is done with it.
    pub fn release(&mut self, BreakdownRef(place): BreakdownRef) {
        if BreakdownRef(place) == BreakdownRef::default() {
            return;
        }
        let holders = &mut self.holders[place as usize];
        *holders -= 1;
        if *holders == 0 {
            self.places.release(place as usize);
        }
    }

    /// How many accounts are held, without the empty one.
    pub fn held(&self) -> usize {
        self.places.taken() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Duration;
    use crate::breakdown::WaitReason;

    #[test]
    fn a_change_is_seen_by_nobody_else_and_made_in_place_if_there_is_nobody() {
        let us = Duration::from_micros;
        let mut pool = Pool::default();
        let mut one = BreakdownRef::default();
        pool.change(&mut one).hold(WaitReason::Rate, us(1));
        let mut other = pool.share(&one);
        pool.change(&mut other).hold(WaitReason::Rate, us(10));
        assert_eq!((pool.get(&one).total(), pool.get(&other).total()), (us(1), us(11)));
        assert_eq!(pool.get(&BreakdownRef::default()).total(), us(0));
        assert_eq!(pool.held(), 2);
        pool.change(&mut one).hold(WaitReason::Gap, us(100));
        assert_eq!((pool.get(&one).total(), pool.held()), (us(101), 2));
        let last = pool.share(&one);
        for share in [one, other, BreakdownRef::default()] {
            pool.release(share);
        }
        assert_eq!((pool.get(&last).total(), pool.held()), (us(101), 1));
        pool.release(last);
        assert_eq!(pool.held(), 0);
    }
}
