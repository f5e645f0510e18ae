//! The costs of reading and joining on this machine, by which plans are chosen. They are measured by
//! `CALIBRATE`, or by upkeep when the file has become large, and are kept in the file for the machine on
//! which they were measured.
//!
//! | a database | begins with |
//! |---|---|
//! | in memory, or in a file without costs of this processor | typical costs ([`Costs::default`]) |
//! | in a file with costs of this processor | these |
//!
//! Measuring takes half a second and [`cost::MEMORY`] bytes, too much for a database of a few megabytes,
//! where every plan is fast. So upkeep measures when the file has [`LARGE`] bytes, once for each processor.

use super::Shared;
use entasis_engine::cost::{self, Costs};
use entasis_engine::exec::Reservation;
use entasis_storage::checkpoint::MachineCosts;
use entasis_vector::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Size of a file in bytes from which on upkeep measures its costs.
const LARGE: u64 = 64 << 20;

/// The processor's name, as the operating system reports it.
static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let named = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, name)| name.trim().to_owned())
    });
    named.unwrap_or_else(|| format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))
});

/// The costs with which statements are bound.
#[derive(Default)]
pub(super) struct CurrentCosts {
    costs: Mutex<Arc<Costs>>,
    /// True if upkeep has measured them, or failed to.
    has_tried: AtomicBool,
}

impl CurrentCosts {
    fn set(&self, costs: Arc<Costs>) {
        *self.costs.lock().unwrap_or_else(PoisonError::into_inner) = costs;
    }
}

impl Shared {
    /// The costs of reading on this machine.
    pub(crate) fn costs(&self) -> Arc<Costs> {
        self.costs.costs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads the file's costs for this processor, if it has any.
    pub(super) fn take_costs(&self) {
        if let Some(kept) = self.kept_costs() {
            self.costs.set(Arc::new(Costs::of_figures(&kept.figures)));
        }
    }

    /// Measures the costs, and keeps them in the file.
    ///
    /// # Errors
    /// Resource, if there is not enough memory for measuring; interrupted; I/O.
    pub(crate) fn calibrate(&self) -> Result<Arc<Costs>> {
        let mut memory = Reservation::new(&self.memory);
        memory.resize(cost::MEMORY)?;
        let costs = Arc::new(Costs::measure()?);
        drop(memory);
        if let Some(durable) = &self.durable {
            let kept = MachineCosts { machine: MACHINE.clone(), figures: costs.figures() };
            durable.keep_costs(&self.catalog, kept)?;
        }
        self.costs.set(costs.clone());
        Ok(costs)
    }

    /// Measures the costs if the file is large and has none for this processor. If there is not enough
    /// memory, or the file cannot be written, the next opening may try again.
    pub(super) fn calibrate_when_large(&self) {
        let is_large = self.durable.as_ref().is_some_and(|durable| durable.file_bytes() >= LARGE);
        if is_large && self.kept_costs().is_none() && !self.costs.has_tried.swap(true, Ordering::Relaxed) {
            let _ = self.calibrate();
        }
    }

    fn kept_costs(&self) -> Option<Arc<MachineCosts>> {
        let kept = self.durable.as_ref()?.costs()?;
        (kept.machine == *MACHINE).then_some(kept)
    }
}
