//! Masks of processor instructions, which show the cost of a choice on an older machine.

use crate::failure::Failure;

/// Bits of OpenSSL's capability vector (OPENSSL_ia32cap(3)): the first word is CPUID leaf 1 (EDX low, ECX high),
/// the second leaf 7 (EBX low, ECX high).
pub struct Mask {
    name: &'static str,
    words: [u64; 2],
    /// Test for the masked instructions on this processor; without them a mask has no effect.
    present: fn() -> bool,
}

const AES_NI: u64 = 1 << 57;
const PCLMULQDQ: u64 = 1 << 33;
const FMA: u64 = 1 << 44;
const AVX: u64 = 1 << 60;
const AVX2: u64 = 1 << 5;
const SHA: u64 = 1 << 29;
const VAES: u64 = 1 << 41;
const VPCLMULQDQ: u64 = 1 << 42;
// The bits are F, DQ, IFMA, CD, BW, VL; then VBMI, VBMI2, VNNI, BITALG and VPOPCNTDQ.
const AVX512: u64 = 1 << 16 | 1 << 17 | 1 << 21 | 1 << 28 | 1 << 30 | 1 << 31;
const AVX512_MORE: u64 = 1 << 33 | 1 << 38 | 1 << 43 | 1 << 44 | 1 << 46;

const MASKS: [Mask; 4] = [
    Mask { name: "native", words: [0, 0], present: || true },
    Mask { name: "no-sha", words: [0, SHA], present: || has("sha_ni") },
    Mask { name: "no-aes", words: [AES_NI | PCLMULQDQ, VAES | VPCLMULQDQ], present: || has("aes") },
    Mask {
        name: "no-vector",
        words: [AVX | FMA, AVX2 | AVX512 | AVX512_MORE | VAES | VPCLMULQDQ],
        present: || has("avx"),
    },
];

impl Mask {
    pub fn named(name: &str) -> Result<&'static Mask, Failure> {
        let mask = MASKS.iter().find(|mask| mask.name == name).ok_or_else(|| {
            let known: Vec<_> = MASKS.iter().map(|mask| mask.name).collect();
            Failure::Failed(format!("no such `cpu`: `{name}` ({})", known.join(", ")))
        })?;
        if mask.words != [0, 0] && !cfg!(target_arch = "x86_64") {
            return Err(Failure::Unsupported("instruction sets can be masked on x86-64 only".to_owned()));
        }
        if !(mask.present)() {
            return Err(Failure::Unsupported(format!(
                "this processor already has no instructions that `{name}` masks"
            )));
        }
        Ok(mask)
    }

    /// Puts the mask into the environment, which a library reads while it is loaded. Fails in a process that
    /// has started a thread: that thread may read the environment.
    fn put_in_environment(&self) -> Result<(), Failure> {
        if self.words == [0, 0] {
            return Ok(());
        }
        if threads() != Some(1) {
            let words = "instruction sets must be masked before the process starts its first thread";
            return Err(Failure::Failed(words.to_owned()));
        }
        let value = format!("~{:#x}:~{:#x}", self.words[0], self.words[1]);
        // SAFETY: this thread is the only one of the process, as the kernel has just reported.
        unsafe { std::env::set_var("OPENSSL_ia32cap", value) };
        Ok(())
    }

    /// Fails unless the library reports that it does not use those instructions.
    pub fn prove_in_effect(&self, settings: Option<&str>) -> Result<(), Failure> {
        if self.words == [0, 0] {
            return Ok(());
        }
        let settings = settings.ok_or_else(|| {
            Failure::Unsupported(
                "this library does not report the instruction sets it uses, so a mask cannot be verified"
                    .to_owned(),
            )
        })?;
        let words: Vec<u64> = settings
            .trim_start_matches("CPUINFO: ")
            .trim_start_matches("OPENSSL_ia32cap=")
            .split([':', ' '])
            .map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
            .collect();
        match words[..] {
            [first, second, ..] if first & self.words[0] == 0 && second & self.words[1] == 0 => Ok(()),
            _ => Err(Failure::Failed(format!("the mask `{}` is not in effect: {settings}", self.name))),
        }
    }
}

/// Makes each libcrypto that this process loads from now on leave instruction sets unused.
pub fn mask(name: &str) -> Result<(), Failure> {
    Mask::named(name)?.put_in_environment()
}

/// Returns the number of threads of this process, or None if the kernel does not report it.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

fn has(flag: &str) -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn an_environment_that_other_threads_may_read_is_left_as_it_is() {
        let (end, ended) = channel::<()>();
        let other = thread::spawn(move || ended.recv());
        let mask = Mask { name: "no-aes", words: [AES_NI, 0], present: || true };
        let refused = mask.put_in_environment().map_err(Failure::into_words);
        assert!(refused.is_err_and(|words| words.contains("first thread")));
        assert_eq!(None, std::env::var_os("OPENSSL_ia32cap"));
        drop(end);
        assert!(other.join().expect("a thread that ends").is_err());
    }
}
