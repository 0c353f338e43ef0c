//! libFuzzer with one of the targets: `TOLLBAR_FUZZ=TARGET tollbar-fuzzing [libFuzzer's options]`. The
//! environment names the target, because libFuzzer starts this program again with its own options.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

use tollbar_fuzzing::{Give, TARGETS};

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(
        argc: *mut c_int,
        argv: *mut *mut *mut c_char,
        callback: unsafe extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

thread_local! {
    static TARGET: RefCell<Give> = RefCell::new(Box::new(|_| ()));
}

unsafe extern "C" fn one(data: *const u8, length: usize) -> c_int {
    // SAFETY: libFuzzer passes `length` readable bytes for the time of the call; the pointer is not used if
    // `length` is 0.
    let bytes = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, length) } };
    TARGET.with_borrow_mut(|target| target(bytes));
    0
}

/// Defines the entry point that the crate would call if it had its own `main`. The slice is the crate's own
/// declaration.
#[allow(improper_ctypes_definitions)]
#[unsafe(no_mangle)]
pub extern "C" fn rust_fuzzer_test_input(_: &[u8]) -> i32 {
    0
}

/// Fuzzes, and ends the process.
fn main() {
    let name = std::env::var("TOLLBAR_FUZZ").unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("error: TOLLBAR_FUZZ names no target: {name}\n\nhint: known: {}", known.join(", "));
        std::process::exit(2);
    };
    libfuzzer_sys::initialize(std::ptr::null(), std::ptr::null());
    TARGET.set((target.make)());
    let arguments: Vec<CString> =
        std::env::args().map(|text| CString::new(text).expect("an argument")).collect();
    let mut places: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let mut count = places.len() as c_int;
    places.push(std::ptr::null_mut());
    let mut argv = places.as_mut_ptr();
    // SAFETY: the arguments have the form that `main` gets, and live until the process ends.
    let status = unsafe { LLVMFuzzerRunDriver(&mut count, &mut argv, one) };
    std::process::exit(status);
}
