//! The workload generators, one file each.

pub mod collective;
pub mod flows;
pub mod incast;
pub mod long_lived;
pub mod mixed;
pub mod permutation;
pub mod poisson;
pub mod rpc;
pub mod storage;
pub mod synchronised;
pub mod trace;

use crate::traffic::Workload;

crate::family! {
    /// Every workload, by the name a scenario gives it.
    pub enum Config as dyn Workload named "workload" {
        poisson, incast, permutation, synchronised, long_lived, rpc, storage, flows, trace, mixed,
        collective,
    }
    known_as {
        "all_to_all" => collective { algorithm = "all_to_all" },
        "shuffle" => collective { algorithm = "all_to_all" },
        "all_reduce" => collective { algorithm = "ring" },
        "allreduce" => collective { algorithm = "ring" },
        "bulk" => long_lived, "ftp" => long_lived,
    }
}

impl Config {
    /// Returns the parameters of long-lived flows without a size.
    pub(crate) fn as_long_lived(&self) -> Option<&long_lived::Config> {
        let Self::long_lived(config) = self else { return None };
        config.size.is_none().then_some(config)
    }
}

#[cfg(test)]
mod tests;
