//! Control groups of the unified hierarchy (cgroup v2): each component that the lab starts has its own, below
//! the lab's.
//!
//! A group has the name of the run's directory and a number, by which the keeper and later runs recognise it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File of a group; a process id that is written to it moves that process into the group.
const PROCESSES: &str = "cgroup.procs";

/// Returns the folder of the group of a process, or None without a unified hierarchy.
pub fn folder_of(pid: i32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    Some(Path::new(mount_of(&mounts)?).join(path))
}

/// Returns the mount point of the unified hierarchy in the text of `/proc/mounts`.
fn mount_of(mounts: &str) -> Option<&str> {
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    mounts.find_map(|mut fields| {
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(place)
    })
}

/// Moves this process into a group, and with it everything that it starts.
pub fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join(PROCESSES), "0")
}

/// Moves this process, the last one of a group, to the parent group, and removes the group.
pub fn leave(group: &Path) -> io::Result<()> {
    let above = group.parent().ok_or_else(|| io::Error::other("there is no group above"))?;
    enter(above)?;
    fs::remove_dir(group)
}

/// Returns the groups below this process's own that belong to the run of this directory.
pub fn of_run(directory: &Path) -> Vec<PathBuf> {
    let prefix = directory.file_name().map(|name| format!("{}.", name.to_string_lossy()));
    let own = folder_of(std::process::id() as i32);
    let (Some(prefix), Some(own)) = (prefix, own) else { return Vec::new() };
    let entries = fs::read_dir(own).into_iter().flatten().flatten();
    let of_run = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    of_run.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_found_wherever_it_is_mounted() {
        let v1 = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let both = format!("{v1}cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n");
        assert_eq!((None, Some("/sys/fs/cgroup/unified")), (mount_of(v1), mount_of(&both)));
        assert_eq!(Some("/sys/fs/cgroup"), mount_of("none /sys/fs/cgroup cgroup2 rw 0 0\n"));
    }

    /// Skipped on machines without a writable unified hierarchy.
    #[test]
    fn the_groups_of_a_run_are_those_of_its_name() {
        let Some(own) = folder_of(std::process::id() as i32) else { return };
        let name = format!("tollbar-test-{}", std::process::id());
        let (one, other) = (own.join(format!("{name}.1")), own.join(format!("{name}0.1")));
        if fs::create_dir(&one).is_err() {
            eprintln!("skipped: no group can be made in {}", own.display());
            return;
        }
        fs::create_dir(&other).expect("another group");
        let found = of_run(&Path::new("/tmp").join(&name));
        fs::remove_dir(&one).expect("removed");
        fs::remove_dir(&other).expect("removed");
        assert_eq!(vec![one], found);
    }
}
