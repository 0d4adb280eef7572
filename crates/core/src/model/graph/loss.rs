//! Packet losses of a link and their configuration in a topology.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, json};

use crate::base::schema::table::{Row, Table};
use crate::base::schema::{File, Parameter, Problem, fraction, positive_fraction};

/// Packet losses of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// No losses.
    None,
    /// Independent losses with this probability.
    Random(f64),
    /// Loss of every n-th packet.
    Every(u64),
    /// Losses in bursts.
    Bursts(Bursts),
    /// Loss of selected packets, in order.
    Chosen(Arc<[Victim]>),
}

crate::parameters! {
    /// Losses in bursts, by the Gilbert-Elliott channel ([gilbert60], [elliott63]): it is good or bad, may
    /// change its state before each packet, and loses the packet with a probability that depends on the
    /// state.
    ///
    /// Let `b` be the share of packets that find it bad: `enter / (enter + leave)`.
    /// In the long run it loses `b * loss_bad + (1 - b) * loss_good` of all packets. With `loss_bad = 1` and
    /// `loss_good = 0` bursts of losses are `1 / leave` packets long on average. The initial state is drawn
    /// with these shares.
    pub struct Bursts {
        /// Probability that the good channel turns bad before a packet. In the long run it is bad for the
        /// share `enter / (enter + leave)` of all packets.
        pub enter: f64, where positive_fraction;
        /// Probability that the bad channel turns good before a packet. It stays bad for `1 / leave` packets
        /// on average.
        pub leave: f64, where positive_fraction;
        /// Probability that a packet is lost while the channel is good ([gilbert60]: 0).
        pub loss_good: f64 = 0.0, where fraction;
        /// Probability that a packet is lost while the channel is bad.
        pub loss_bad: f64 = 1.0, where fraction;
    }
}

impl Bursts {
    /// Share of packets that find the channel bad, in the long run.
    pub fn share(&self) -> f64 {
        self.enter / (self.enter + self.leave)
    }

    /// Reads the bursts of a row of a table, from columns whose names begin with `prefix`.
    pub(crate) fn of_row(row: &Row<'_>, prefix: &str) -> Result<Option<Self>, Problem> {
        let mut given = Map::new();
        for name in ["enter", "leave", "loss_good", "loss_bad"] {
            if let Some(value) = row.value::<f64>(&format!("{prefix}{name}"))? {
                given.insert(name.to_owned(), json!(value));
            }
        }
        if given.is_empty() {
            return Ok(None);
        }
        let wrong =
            |wrong: Problem| row.problem(&format!("{prefix}{}", wrong.field), &wrong.message);
        Self::read(&given.into()).map(Some).map_err(wrong)
    }
}

/// Packet that is selected to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    /// Number of its flow.
    pub flow: u32,
    /// Its segment, counted from 1; 0 for the SYN.
    pub segment: u32,
    /// Transmission of the segment over the link that is lost, counted from 1.
    pub time: u32,
}

impl Loss {
    /// Independent losses with a probability.
    pub fn random(probability: f64) -> Self {
        if probability > 0.0 { Self::Random(probability) } else { Self::None }
    }

    /// Reads the selected packets from a CSV file, which the parameter `field` names.
    pub(crate) fn chosen(field: &str, file: &File) -> Result<Self, Problem> {
        let victims = victims(file).map_err(|problem| problem.of(field))?;
        Ok(Self::Chosen(victims.into_iter().collect()))
    }

    /// Returns the loss model that is set. A link has at most one.
    pub(crate) fn one_of<'a>(
        given: impl IntoIterator<Item = (&'a str, Self)>,
    ) -> Result<Self, Problem> {
        let mut given = given.into_iter().filter(|(_, loss)| *loss != Self::None);
        let Some((first, loss)) = given.next() else { return Ok(Self::None) };
        given.next().map_or(Ok(loss), |(second, _)| {
            let message = format!("must be omitted: `{first}` already defines the lost packets");
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
