//! What the profile says of a partitioned join.

use super::shared::Partitioning;

impl Partitioning {
    /// Called when all partitions have been joined: records what was written and why.
    pub(super) fn note_end(&self) {
        if self.is_active() {
            self.recorder.note(self.report());
        }
    }

    /// What was written and why.
    fn report(&self) -> String {
        let count = self.marks.len();
        let late = (0..count).filter(|&p| self.is_marked(p)).count();
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (build, probe) =
            (self.build.traffic(), self.probe.get().map_or((0, 0), |probe| probe.store.traffic()));
        let again = self.statistics.again();
        let why = self.policy.why();
        let mut text = format!("{late} of {count} partitions in temporary files, {why}");
        if self.is_radix() {
            text = self.report_radix(late);
            if build.0 + probe.0 + again[0] == 0 {
                return text;
            }
            text += &format!("; some rows in temporary files, {why}");
        }
        text += &format!(
            ": {:.1} MB of build rows and {:.1} MB of probe rows written, {:.1} MB read; depth {}",
            megabytes(build.0),
            megabytes(probe.0),
            megabytes(build.1 + probe.1 + again[1]),
            self.statistics.deepest(),
        );
        if again[0] > 0 {
            text += &format!(", {:.1} MB written again", megabytes(again[0]));
        }
        let blocks = self.statistics.blocks();
        if blocks > 0 {
            text += &format!(", {blocks} blocks of rows with frequent keys");
        }
        text
    }

    /// The report of partitions in memory.
    fn report_radix(&self, late: usize) -> String {
        let probe = self.probe.get().map_or(0, |probe| probe.store.kept_bytes());
        let [build, probe] = [self.build.kept_bytes(), probe].map(|bytes| bytes as f64 / 1e6);
        let [split, made] = self.statistics.second_pass();
        let passes = match split {
            0 => "1 pass".to_string(),
            _ => format!(
                "2 passes: {split} partitions were split into {made}, join_partition_size = {} bytes",
                self.context.settings.join_partition_size
            ),
        };
        let (count, why) = (self.marks.len(), self.radix.get().map_or("", String::as_str));
        format!(
            "radix join, {why}: {late} of {count} partitions have build rows, {passes}; {build:.1} MB of build rows and {probe:.1} MB of probe rows in memory"
        )
    }
}
