//! Which packets a link loses on the way, and how a topology says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::parameters::table::{Row, Table};
use crate::parameters::{File, Problem};

/// Which packets a link loses.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each with this probability, whatever becomes of the others.
    Random(f64),
    /// Every so many-th.
    Every(u64),
    /// These and no others; in order.
    Chosen(Arc<[Victim]>),
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
