//! Tests the prompt in a terminal, which the program `script` of util-linux makes. They wait for texts, and
//! so do not depend on the speed of the machine.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// After this time a text does not come any more.
const PATIENCE: Duration = Duration::from_secs(120);
/// A statement that would take hours.
const LONG: &str = "SELECT count(*) FROM range(100000000) a(i), range(100000) b(j)";

/// What has been shown, and whether more may come.
type Shown = Arc<(Mutex<(String, bool)>, Condvar)>;

/// The shell in a terminal of 24 lines of 80 characters.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: Shown,
    /// Up to where texts have been waited for.
    seen: usize,
    /// The directory in which it runs, with those of the user's files.
    home: PathBuf,
}

impl Terminal {
    fn open(name: &str, arguments: &str, variables: &[(&str, &str)]) -> Terminal {
        let home = std::env::temp_dir().join(format!("entasis-prompt-{}-{name}", std::process::id()));
        std::fs::create_dir_all(home.join("entasis")).unwrap();
        Terminal::open_in(home, arguments, variables)
    }

    fn open_in(home: PathBuf, arguments: &str, variables: &[(&str, &str)]) -> Terminal {
        let program = env!("CARGO_BIN_EXE_entasis");
        let mut child = Command::new("script")
            .args(["-qec", &format!("stty rows 24 cols 80; exec {program} {arguments}"), "/dev/null"])
            .current_dir(&home)
            .envs([("XDG_DATA_HOME", &home), ("XDG_CONFIG_HOME", &home)])
            .env("TERM", "xterm")
            .env("PAGER", "sed s/^/paged:/")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program script of util-linux");
        let shown = Shown::default();
        let (mut output, writer) = (child.stdout.take().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let length = output.read(&mut bytes).unwrap_or(0);
                let mut state = writer.0.lock().unwrap();
                state.0.push_str(&String::from_utf8_lossy(&bytes[..length]));
                state.1 = length == 0;
                writer.1.notify_all();
                if length == 0 {
                    return;
                }
            }
        });
        let keys = child.stdin.take().unwrap();
        Terminal { child, keys, shown, seen: 0, home }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line.
    fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until a text appears after what has been seen. False if it does not in this time.
    fn comes(&mut self, text: &str, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut state = self.shown.0.lock().unwrap();
        loop {
            if let Some(at) = state.0[self.seen..].find(text) {
                self.seen += at + text.len();
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if state.1 || left.is_zero() {
                return false;
            }
            state = self.shown.1.wait_timeout(state, left).unwrap().0;
        }
    }

    fn wait_for(&mut self, text: &str) {
        if !self.comes(text, PATIENCE) {
            panic!("{text:?} does not come: {:?}", self.shown.0.lock().unwrap().0);
        }
    }

    /// Presses Ctrl-C until a text appears: one that comes before a statement runs is for the line.
    fn interrupt_until(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            self.press("\x03");
            if self.comes(text, Duration::from_millis(300)) {
                return;
            }
        }
        panic!("{text:?} does not come: {:?}", self.shown.0.lock().unwrap().0);
    }

    /// Leaves, and returns all that was shown.
    fn leave(mut self) -> String {
        self.enter(".quit");
        self.end()
    }

    /// Waits for the end, and returns all that was shown.
    fn end(mut self) -> String {
        self.child.wait().unwrap();
        let _ = std::fs::remove_dir_all(&self.home);
        let mut state = self.shown.0.lock().unwrap();
        while !state.1 {
            state = self.shown.1.wait(state).unwrap();
        }
        state.0.clone()
    }
}

#[test]
fn all_statements_of_a_paste_run() {
    // All at once, without the marks of a bracketed paste; some over several lines.
    let mut terminal = Terminal::open("paste", "", &[]);
    let statements: String = (0..10)
        .map(|i| format!("SELECT {i} * 1001{}AS pasted;\r", if i % 2 == 0 { " " } else { "\r" }))
        .collect();
    terminal.press(&statements);
    for i in 0..10 {
        // Not what was typed, but the result.
        terminal.wait_for(&format!("{} │", i * 1001));
    }
    terminal.leave();
}

#[test]
fn the_prompt_names_the_database_and_its_state() {
    let mut terminal = Terminal::open("state", "my.db", &[]);
    terminal.wait_for("my.db> ");
    terminal.enter("BEGIN;");
    terminal.wait_for("my.db*> ");
    terminal.enter("SELECT 6 *");
    terminal.wait_for("  ...> ");
    terminal.enter("7 AS answer;");
    terminal.wait_for("42 │");
    terminal.wait_for("my.db*> ");
    terminal.enter("ROLLBACK;");
    terminal.wait_for("my.db> ");
    terminal.enter(".open other.db");
    terminal.wait_for("other.db> ");
    // Completion is by the database that is open now.
    terminal.enter("CREATE TABLE only_here (i INTEGER);");
    terminal.wait_for("done");
    terminal.press("FROM only_\t");
    terminal.wait_for("only_here");
    terminal.enter(";");
    terminal.wait_for("0 rows");
    terminal.leave();
}

#[test]
fn ctrl_c_cancels_statements_and_ends_watching() {
    let mut terminal = Terminal::open("interrupt", "", &[]);
    terminal.wait_for("entasis> ");
    terminal.enter(&format!("{LONG};"));
    terminal.interrupt_until("the statement was cancelled");
    terminal.enter(".watch 0.01 SELECT 6 * 7 AS answer");
    for _ in 0..3 {
        terminal.wait_for("42 │");
    }
    terminal.press("\x03");
    terminal.enter("SELECT 11 * 1001 AS later;");
    terminal.wait_for("11011 │");
    terminal.leave();
}

#[test]
fn what_is_longer_than_the_screen_goes_to_the_pager() {
    let mut terminal = Terminal::open("pager", "", &[]);
    terminal.enter("SELECT i FROM range(100) r(i);");
    // A table is shortened.
    terminal.wait_for("(40 shown)");
    terminal.enter(".last");
    terminal.wait_for("paged:│     50 │");
    terminal.wait_for("100 rows");
    terminal.enter(".x");
    terminal.wait_for("paged:i = 99");
    terminal.enter(".pager off");
    terminal.enter(".mode line");
    terminal.enter("SELECT i + 1000 AS i FROM range(100) r(i);");
    terminal.wait_for("i = 1099");
    let text = terminal.leave();
    assert!(!text.contains("paged:i = 1000"), "{text}");
}

#[test]
fn the_init_file_runs_before_the_first_prompt() {
    let mut terminal = Terminal::open("none", "", &[]);
    terminal.wait_for("entasis> ");
    std::fs::write(terminal.home.join("entasis/init.sql"), "CREATE TABLE t AS SELECT 77 AS n;\n.timer off")
        .unwrap();
    let home = terminal.home.clone();
    for (arguments, has_run) in [("", true), ("--no-init", false)] {
        let mut terminal = Terminal::open_in(home.clone(), arguments, &[]);
        std::fs::create_dir_all(home.join("entasis")).unwrap();
        terminal.wait_for("entasis> ");
        terminal.enter("FROM t;");
        terminal.wait_for(if has_run { "77 │" } else { "there is no table t" });
        terminal.press(".quit\r");
        terminal.child.wait().unwrap();
    }
    terminal.leave();
}

#[test]
fn without_colours_later_lines_have_their_mark_too() {
    let mut terminal = Terminal::open("plain", "", &[("NO_COLOR", "1")]);
    terminal.wait_for("entasis> ");
    terminal.enter("SELECT 6 * -- twelve");
    terminal.wait_for("   ...> ");
    terminal.enter("7 AS answer;");
    terminal.wait_for("42 │");
    let text = terminal.leave();
    // A colour ends with m; other escapes move the cursor.
    let is_colour = |escape: &str| {
        escape.trim_start_matches(|c: char| c == '[' || c == ';' || c.is_ascii_digit()).starts_with('m')
    };
    assert!(!text.split('\x1b').skip(1).any(is_colour), "{text:?}");
}

#[test]
fn a_dumb_terminal_gets_no_escapes() {
    let mut terminal = Terminal::open("dumb", "", &[("TERM", "dumb")]);
    terminal.wait_for("entasis> ");
    terminal.enter("SELECT x;");
    terminal.wait_for("Error: ");
    terminal.enter("SELECT 6 * 7 AS answer;");
    terminal.wait_for("42 │");
    let text = terminal.leave();
    assert!(!text.contains('\x1b'), "{text:?}");
}
