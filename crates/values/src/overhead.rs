//! What profiling would cost the program, by the paper's model (3.5): interrupts, and updates of the table in memory.

/// What a method did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Interrupts; for simple sampling, buffers that were filled.
    pub interrupts: u64,
    /// Slots, or samples, merged into the table.
    pub updates: u64,
    /// Loads that had to be recorded for it.
    pub recorded: u64,
}

/// Cycles for each of them. The paper says that simple sampling once in 32,000 instructions costs 0.3 %: 96 cycles per
/// sample at one instruction per cycle, most of them for the cache misses of the table. Handlers take 10 to 30 cycles of
/// their own "depending on the complexity", so merging a slot, the complex case, takes 20 more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverheadModel {
    /// Entering and leaving the handler, starting the co-processor again.
    pub interrupt: f64,
    /// Merging a slot: several counters, and the decision to mask.
    pub slot: f64,
    /// Merging a sample of simple sampling: one counter.
    pub sample: f64,
    /// Samples that simple sampling gathers per interrupt: as many as there are slots in the same memory.
    pub buffer: u64,
    /// Cycles that an instruction of the program takes.
    pub cycles_per_instruction: f64,
}

impl Default for OverheadModel {
    fn default() -> Self {
        OverheadModel {
            interrupt: 250.0,
            slot: 115.0,
            sample: 95.0,
            buffer: 256,
            cycles_per_instruction: 1.0,
        }
    }
}

impl OverheadModel {
    /// Cycles that slots cost.
    pub fn slots(&self, cost: &Cost) -> f64 {
        cost.interrupts as f64 * self.interrupt + cost.updates as f64 * self.slot
    }

    /// Cycles that simple sampling costs.
    pub fn sampling(&self, cost: &Cost) -> f64 {
        cost.interrupts as f64 * self.interrupt + cost.updates as f64 * self.sample
    }

    /// Those cycles as a share of a program's.
    pub fn share(&self, cycles: f64, instructions: u64) -> f64 {
        if instructions == 0 { 0.0 } else { cycles / (instructions as f64 * self.cycles_per_instruction) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_by_hand() {
        let model = OverheadModel::default();
        let cost = Cost { interrupts: 2, updates: 400, recorded: 9000 };
        assert_eq!(model.slots(&cost), 500.0 + 46_000.0);
        assert_eq!(model.sampling(&cost), 500.0 + 38_000.0);
        assert_eq!(model.share(4_500.0, 450_000), 0.01);
        assert_eq!(model.share(4_500.0, 0), 0.0);
    }

    #[test]
    fn a_sample_in_32000_instructions_costs_0_3_percent() {
        let model = OverheadModel::default();
        let cost = Cost { interrupts: 100_000 / model.buffer, updates: 100_000, recorded: 100_000 };
        let share = model.share(model.sampling(&cost), 32_000 * 100_000);
        assert!((share - 0.003).abs() < 0.0001, "{share}");
    }
}
