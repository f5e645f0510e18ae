#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    entasis_fuzz::recover::run(bytes);
});
