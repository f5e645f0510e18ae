#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    entasis_fuzz::wal::run(bytes);
});
