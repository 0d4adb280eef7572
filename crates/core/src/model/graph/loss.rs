//! Which packets a link loses on the way, and how a topology says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, json};

use crate::base::schema::table::{Row, Table};
use crate::base::schema::{File, Parameter, Problem, fraction, positive_fraction};

/// Which packets a link loses.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each with this probability, whatever becomes of the others.
    Random(f64),
    /// Every so many-th.
    Every(u64),
    /// More in some stretches than in others.
    Bursts(Bursts),
    /// These and no others; in order.
    Chosen(Arc<[Victim]>),
}

crate::parameters! {
    /// Losses in bursts, by the channel of [gilbert60] and [elliott63]: it is good or bad, may turn
    /// from one to the other before each packet, and loses the packet with a probability of its
    /// state.
    ///
    /// With `b` as the share of packets that find it bad, `enter / (enter + leave)`, in the long run
    /// `b * loss_bad + (1 - b) * loss_good` of all are lost. With `loss_bad = 1` and `loss_good = 0`
    /// bursts of losses are `1 / leave` packets long on average. It begins in either state, with its
    /// share.
    pub struct Bursts {
        /// Probability that the good channel turns bad before a packet. In the long run it is bad for
        /// the share `enter / (enter + leave)` of all packets.
        pub enter: f64, where positive_fraction;
        /// Probability that the bad channel turns good before a packet. It stays bad for `1 / leave`
        /// packets on average.
        pub leave: f64, where positive_fraction;
        /// Probability that a packet is lost while the channel is good ([gilbert60]: 0).
        pub loss_good: f64 = 0.0, where fraction;
        /// Probability that a packet is lost while it is bad. By default all are.
        pub loss_bad: f64 = 1.0, where fraction;
    }
}

impl Bursts {
    /// The share of packets that find the channel bad, in the long run.
    pub fn share(&self) -> f64 {
        self.enter / (self.enter + self.leave)
    }

    /// What a row of a table says of them, in columns whose names begin with `prefix`.
    pub(crate) fn of_row(row: &Row<'_>, prefix: &str) -> Result<Option<Self>, Problem> {
        let mut said = Map::new();
        for name in ["enter", "leave", "loss_good", "loss_bad"] {
            if let Some(value) = row.value::<f64>(&format!("{prefix}{name}"))? {
                said.insert(name.to_owned(), json!(value));
            }
        }
        if said.is_empty() {
            return Ok(None);
        }
        let wrong =
            |wrong: Problem| row.problem(&format!("{prefix}{}", wrong.field), &wrong.message);
        Self::read(&said.into()).map(Some).map_err(wrong)
    }
}

/// A packet that is chosen to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    /// The number of its flow.
    pub flow: u32,
    /// Its segment, counted from 1; 0 is the SYN.
    pub segment: u32,
    /// Which of the copies of it that come to the link this is, counted from 1.
    pub time: u32,
}

impl Loss {
    /// Each packet is lost with this probability.
    pub fn random(probability: f64) -> Self {
        if probability > 0.0 { Self::Random(probability) } else { Self::None }
    }

    /// Those that a CSV file chooses, which the parameter `field` names.
    pub(crate) fn chosen(field: &str, file: &File) -> Result<Self, Problem> {
        let victims = victims(file).map_err(|problem| problem.of(field))?;
        Ok(Self::Chosen(victims.into_iter().collect()))
    }

    /// What one of several parameters says; a link loses its packets in one way.
    pub(crate) fn one_of<const N: usize>(said: [(&str, Self); N]) -> Result<Self, Problem> {
        let mut said = said.into_iter().filter(|(_, loss)| *loss != Self::None);
        let Some((first, loss)) = said.next() else { return Ok(Self::None) };
        said.next().map_or(Ok(loss), |(second, _)| {
            let message =
                format!("must be left out: `{first}` says which packets are lost already");
            Err(Problem::new(second, message))
        })
    }
}

fn victims(file: &File) -> Result<BTreeSet<Victim>, Problem> {
    let mut victims = BTreeSet::new();
    Table::open(file, &["flow", "segment", "time"], &[])?.rows(|row| {
        let victim = victim(row)?;
        if !victims.insert(victim) {
            let Victim { flow, segment, time } = victim;
            let message =
                format!("copy {time} of segment {segment} of flow {flow} is chosen twice");
            return Err(row.problem("time", &message));
        }
        Ok(())
    })?;
    if victims.is_empty() {
        return Err(Problem::new("", format!("{}: no rows, one for each loss", file.name)));
    }
    Ok(victims)
}

fn victim(row: &Row<'_>) -> Result<Victim, Problem> {
    let [flow, segment] = [row.required("flow")?, row.required("segment")?];
    match row.required("time")? {
        0 => Err(row.problem("time", "must be 1 or more: copies are counted from 1")),
        time => Ok(Victim { flow, segment, time }),
    }
}
