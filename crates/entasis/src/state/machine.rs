//! What the machine offers this process: memory. Read from files of the system, once.
//!
//! A container may be given less than the machine has. Its limits are those of its control group and of all
//! groups around it, of version 2 (`memory.max`) or 1 (`memory.limit_in_bytes`).

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The bytes of memory that this process may use, if the system reports it.
pub(crate) fn memory() -> Option<usize> {
    static MEMORY: OnceLock<Option<usize>> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let all = of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Some(of_groups(&groups, Path::new("/sys/fs/cgroup")).map_or(all, |limit| limit.min(all)))
    })
}

/// The machine's memory, from `/proc/meminfo`.
fn of_machine(text: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The least limit of the groups that `/proc/self/cgroup` lists, and of those around them.
fn of_groups(listed: &str, root: &Path) -> Option<usize> {
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let own = root.join(path);
        let around = own.ancestors().take_while(|folder| folder.starts_with(&root));
        // "max" is no limit.
        around.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
    };
    listed.lines().filter_map(group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_the_groups_counts() {
        assert_eq!(of_machine("MemFree: 1 kB\nMemTotal:       24683656 kB\n"), Some(24_683_656 << 10));
        let root = std::env::temp_dir().join(format!("entasis-groups-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("memory.max", "max\n");
        write("pods/memory.max", "4000000\n");
        write("pods/own/memory.max", "max\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/job/memory.limit_in_bytes", "3000000\n");
        for (listed, expected) in [
            ("0::/pods/own\n", Some(4_000_000)),
            ("0::/\n", None),
            ("0::/elsewhere\n", None),
            ("7:cpu:/job\n5:memory:/job\n0::/\n", Some(3_000_000)),
            ("5:pids,memory:/job\n0::/pods\n", Some(3_000_000)),
            ("", None),
        ] {
            assert_eq!(of_groups(listed, &root), expected, "{listed}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
