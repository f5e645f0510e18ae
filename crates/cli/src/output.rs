//! Where results go: standard output, a file or a command, for all results (`.output`, `-o`) or for the next
//! one (`.once`); and the pager, for what is longer than the screen.
//!
//! Errors, notes and times go to standard error wherever results go.

use entasis::{Error, ErrorKind, Result, refuse_database};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// Exit codes of the system's shell for a command that it cannot run, and for one that is not there.
const NOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// What takes results.
pub enum Destination {
    /// A file, which is created or replaced.
    File(PathBuf, BufWriter<File>),
    /// The standard input of a command.
    Pipe(Pipe),
}

/// A command that reads what is written.
pub struct Pipe {
    command: String,
    child: Child,
    /// Absent once everything is written.
    input: Option<BufWriter<ChildStdin>>,
}

impl Destination {
    /// `| command`, or a file.
    ///
    /// # Errors
    /// I/O, if the file cannot be written or the command cannot be started; input, if the file is a database.
    pub fn parse(text: &str) -> Result<Destination> {
        match text.strip_prefix('|') {
            Some(command) if command.trim().is_empty() => {
                Err(Error::input("there is no command after the |"))
            }
            Some(command) => Pipe::start(command.trim()).map(Destination::Pipe),
            None => Destination::file(Path::new(text)),
        }
    }

    /// A file.
    ///
    /// # Errors
    /// I/O, if it cannot be written; input, if it is a database.
    pub fn file(path: &Path) -> Result<Destination> {
        refuse_database(path)?;
        let file = File::create(path).map_err(|error| Error::io(format!("'{}'", path.display()), &error))?;
        Ok(Destination::File(path.to_owned(), BufWriter::new(file)))
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Destination::File(_, file) => file,
            Destination::Pipe(pipe) => pipe,
        }
    }

    /// Writes what is left, and waits for the command.
    fn finish(self) -> Result<()> {
        match self {
            Destination::File(path, mut file) => {
                file.flush().map_err(|error| Error::io(format!("'{}'", path.display()), &error))
            }
            Destination::Pipe(pipe) => pipe.finish(),
        }
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::File(path, _) => write!(f, "{}", path.display()),
            Destination::Pipe(pipe) => write!(f, "| {}", pipe.command),
        }
    }
}

/// A command line for the system's shell.
pub fn system(command: &str) -> Command {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut system = Command::new(shell);
    system.args([option, command]);
    system
}

impl Pipe {
    fn start(command: &str) -> Result<Pipe> {
        let mut system = system(command);
        // The options that make `less` scroll sideways, and keep colours and what is on the screen.
        if std::env::var_os("LESS").is_none() {
            system.env("LESS", "SRX");
        }
        let failed = |error| Error::io(format!("'{command}'"), &error);
        let mut child = system.stdin(Stdio::piped()).spawn().map_err(failed)?;
        let input = child.stdin.take().map(BufWriter::new);
        Ok(Pipe { command: command.to_owned(), child, input })
    }

    /// Writes what is left, and waits for the end.
    fn wait(&mut self) -> Result<ExitStatus> {
        let written = self.input.take().map_or(Ok(()), |mut input| input.flush());
        let failed = |error| Error::io(format!("'{}'", self.command), &error);
        let status = self.child.wait().map_err(failed)?;
        // A command that has enough is none that fails.
        written.or_else(|error| ignore_closed(error, ())).map_err(failed)?;
        Ok(status)
    }

    fn finish(mut self) -> Result<()> {
        match self.wait()? {
            status if status.success() => Ok(()),
            status => Err(Error::new(ErrorKind::Io, format!("'{}' ended with {status}", self.command))),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.flush()
    }
}

/// `value`, if the reader has closed the pipe.
fn ignore_closed<T>(error: io::Error, value: T) -> io::Result<T> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(value) } else { Err(error) }
}

/// The output of a session.
pub struct Outlet {
    standard: Box<dyn Write>,
    /// Standard output is a terminal.
    is_terminal: bool,
    /// Where all results go instead.
    redirected: Option<Destination>,
    /// Where the next result goes instead.
    once: Option<Once>,
}

struct Once {
    to: Destination,
    /// Something was written to it.
    is_used: bool,
}

impl Outlet {
    /// Standard output.
    pub fn new() -> Outlet {
        let is_terminal = io::stdout().is_terminal();
        Outlet { standard: Box::new(BufWriter::new(io::stdout())), is_terminal, redirected: None, once: None }
    }

    /// Whether results are shown on a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal && self.redirected.is_none() && self.once.is_none()
    }

    /// Whether results go to standard output.
    pub fn is_standard(&self) -> bool {
        self.redirected.is_none() && self.once.is_none()
    }

    /// Whether results go to a command, which may use the terminal itself.
    pub fn is_pipe(&self) -> bool {
        let to = self.once.as_ref().map(|once| &once.to).or(self.redirected.as_ref());
        matches!(to, Some(Destination::Pipe(_)))
    }

    /// Sends all results to a file or command from now on; `None`: to standard output.
    ///
    /// # Errors
    /// Those of the previous one, when the rest is written to it.
    pub fn redirect(&mut self, to: Option<Destination>) -> Result<()> {
        let before = std::mem::replace(&mut self.redirected, to);
        before.map_or(Ok(()), Destination::finish)
    }

    /// Sends the next result to a file or command.
    ///
    /// # Errors
    /// Those of the previous one, when the rest is written to it.
    pub fn once(&mut self, to: Destination) -> Result<()> {
        self.end_once()?;
        self.once = Some(Once { to, is_used: false });
        Ok(())
    }

    /// Ends `.once` after a result was written; does nothing if there was none.
    ///
    /// # Errors
    /// Those of the file or command.
    pub fn after_piece(&mut self) -> Result<()> {
        if self.once.as_ref().is_some_and(|once| once.is_used) { self.end_once() } else { Ok(()) }
    }

    fn end_once(&mut self) -> Result<()> {
        self.once.take().map_or(Ok(()), |once| once.to.finish())
    }

    /// Counts a result of which nothing may be written.
    pub fn use_once(&mut self) {
        self.once.iter_mut().for_each(|once| once.is_used = true);
    }

    /// Where results go, in words.
    pub fn described(&self) -> String {
        match (&self.once, &self.redirected) {
            (Some(once), _) => format!("{} (once)", once.to),
            (None, Some(to)) => to.to_string(),
            (None, None) => "-".to_owned(),
        }
    }

    /// Writes everything, and waits for commands.
    ///
    /// # Errors
    /// Those of the files and commands.
    pub fn close(&mut self) -> Result<()> {
        self.end_once().and(self.redirect(None))
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (&mut self.once, &mut self.redirected) {
            (Some(once), _) => {
                once.is_used = true;
                once.to.writer().write(bytes)
            }
            (None, Some(to)) => to.writer().write(bytes),
            (None, None) => self.standard.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match (&mut self.once, &mut self.redirected) {
            (Some(once), _) => once.to.writer().flush(),
            (None, Some(to)) => to.writer().flush(),
            (None, None) => self.standard.flush(),
        }
    }
}

/// Keeps what is written until it is too long or too wide for the screen, and then passes it to the pager.
pub struct Paged<'a> {
    out: &'a mut dyn Write,
    command: &'a str,
    /// Lines that fit, and characters of a line.
    screen: (usize, usize),
    kept: Vec<u8>,
    /// Bytes and lines of it that have been measured.
    measured: (usize, usize),
    pager: Option<Pipe>,
}

impl<'a> Paged<'a> {
    /// Before `out`, a terminal of so many lines and columns, with a pager's command.
    pub fn new(out: &'a mut dyn Write, command: &'a str, screen: (usize, usize)) -> Paged<'a> {
        Paged { out, command, screen, kept: Vec::new(), measured: (0, 0), pager: None }
    }

    /// Writes what fits, or waits until the user leaves the pager.
    ///
    /// # Errors
    /// I/O, if the pager cannot be run, or the terminal cannot be written.
    pub fn finish(mut self) -> Result<()> {
        match &mut self.pager {
            // Leaving it, in whatever way, is no failure.
            Some(pager) => match pager.wait()?.code() {
                Some(NOT_RUN | NOT_FOUND) => {
                    let text = format!("the pager '{}' cannot be run", self.command);
                    Err(Error::new(ErrorKind::Io, text).with_hint("set $PAGER, or write .pager off"))
                }
                _ => Ok(()),
            },
            None => {
                let written = self.out.write_all(&self.kept).and_then(|()| self.out.flush());
                written.map_err(|error| Error::io("the terminal", &error))
            }
        }
    }

    /// Whether what is kept fits on the screen, with a line for the prompt.
    fn fits(&mut self) -> bool {
        let (height, width) = self.screen;
        let (start, mut lines) = self.measured;
        let Some(end) = self.kept[start..].iter().rposition(|byte| *byte == b'\n') else { return true };
        let mut is_wide = false;
        for line in self.kept[start..start + end].split(|byte| *byte == b'\n') {
            is_wide |= console::measure_text_width(&String::from_utf8_lossy(line)) > width;
            lines += 1;
        }
        self.measured = (start + end + 1, lines);
        !is_wide && lines < height
    }
}

impl Write for Paged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(pager) = &mut self.pager {
            return pager.write(bytes);
        }
        self.kept.extend_from_slice(bytes);
        if !self.fits() {
            let mut pager = Pipe::start(self.command).map_err(|error| io::Error::other(error.to_string()))?;
            let written = pager.write_all(&std::mem::take(&mut self.kept));
            self.pager = Some(pager);
            written?;
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.pager.as_mut().map_or(Ok(()), Pipe::flush)
    }
}

/// The user's pager: `$PAGER`, or `less` if it is installed; none if `$PAGER` is empty.
pub fn pager() -> Option<String> {
    match std::env::var("PAGER") {
        Ok(pager) => Some(pager).filter(|pager| !pager.trim().is_empty()),
        Err(_) => {
            let path = std::env::var_os("PATH")?;
            let has_less = std::env::split_paths(&path).any(|folder| folder.join("less").is_file());
            has_less.then(|| "less".to_owned())
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("entasis-output-{}-{name}", std::process::id()))
    }

    fn outlet() -> Outlet {
        Outlet { standard: Box::new(io::sink()), is_terminal: true, redirected: None, once: None }
    }

    #[test]
    fn results_go_where_they_are_sent() {
        let [all, one] = ["all", "one"].map(place);
        let mut out = outlet();
        out.redirect(Some(Destination::file(&all).unwrap())).unwrap();
        assert!(!out.is_terminal());
        out.write_all(b"1\n").unwrap();
        out.once(Destination::parse(&format!("| tr a-z A-Z > {}", one.display())).unwrap()).unwrap();
        // A command that writes nothing leaves it as it is.
        out.after_piece().unwrap();
        out.write_all(b"two\n").unwrap();
        out.after_piece().unwrap();
        out.write_all(b"3\n").unwrap();
        out.close().unwrap();
        assert!(out.is_terminal());
        assert_eq!(std::fs::read_to_string(&all).unwrap(), "1\n3\n");
        assert_eq!(std::fs::read_to_string(&one).unwrap(), "TWO\n");
        [all, one].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        assert!(Destination::file(Path::new("no-such-directory/x")).is_err());
        assert!(Destination::parse("| ").is_err());
        let mut out = outlet();
        out.once(Destination::parse("| cat > /dev/null; exit 3").unwrap()).unwrap();
        out.use_once();
        assert!(out.after_piece().unwrap_err().message().contains("exit 3' ended with"));
    }

    #[test]
    fn a_command_that_has_enough_is_no_error() {
        let mut out = outlet();
        out.once(Destination::parse("| true").unwrap()).unwrap();
        let _ = (0..100_000).try_for_each(|i| writeln!(out, "{i}"));
        out.after_piece().unwrap();
    }

    #[test]
    fn only_what_does_not_fit_goes_to_the_pager() {
        let paged = place("paged");
        let command = format!("cat > {}", paged.display());
        let mut screen = Vec::new();
        for (lines, line, is_paged) in
            [(2, "\x1b[1mnarrow\x1b[0m", false), (3, "", true), (1, "too wide", true)]
        {
            screen.clear();
            let mut out = Paged::new(&mut screen, &command, (3, 7));
            (0..lines).for_each(|_| writeln!(out, "{line}").unwrap());
            out.finish().unwrap();
            let text = format!("{line}\n").repeat(lines);
            match is_paged {
                true => assert_eq!(std::fs::read_to_string(&paged).unwrap(), text),
                false => assert_eq!(screen, text.as_bytes()),
            }
        }
        std::fs::remove_file(paged).unwrap();
        let mut out = Paged::new(&mut screen, "no-such-pager 2> /dev/null", (3, 7));
        let _ = (0..3).try_for_each(|_| writeln!(out));
        assert!(out.finish().unwrap_err().message().contains("no-such-pager"));
    }
}
