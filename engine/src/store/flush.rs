//! How long this file system takes to have data on its disk: what a durable commit waits for.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::clock;
use crate::contract::Failure;

/// What a database's log is written in, about.
const BYTES: usize = 8192;
const NAME: &str = "tollbar-flush";

/// Microseconds that one write and its flush take in a directory. The file is there before, and is removed.
pub fn one_us(directory: &Path) -> Result<u64, Failure> {
    let path = directory.join(NAME);
    let timed = time(&path);
    let _ = std::fs::remove_file(&path);
    timed.map_err(|error| Failure::Failed(format!("a flush in {}: {error}", directory.display())))
}

fn time(path: &Path) -> std::io::Result<u64> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    // A log is overwritten, or has its space: the file's size does not change in what is timed.
    file.write_all(&[0; BYTES])?;
    file.sync_all()?;
    let start_ns = clock::wall_ns();
    rustix::io::pwrite(&file, &[1; BYTES], 0)?;
    file.sync_data()?;
    Ok((clock::wall_ns() - start_ns) / 1000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_flush_takes_time_and_leaves_no_file() {
        let directory = std::env::temp_dir();
        assert!(super::one_us(&directory).is_ok());
        assert!(!directory.join(super::NAME).exists());
        assert!(super::one_us(std::path::Path::new("/proc/nothing")).is_err());
    }
}
