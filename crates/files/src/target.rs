//! Where a file is written: beside its target, or into it.
//!
//! | what is at the path | what happens |
//! |---|---|
//! | nothing, or a regular file | a new file beside it, of a random name, which replaces it at the end |
//! | a symbolic link | the same for the file that the link leads to; the link stays |
//! | a device, a FIFO, a descriptor of this process (`/dev/stdout`, `/dev/fd/3`) | it is written into |
//!
//! So a statement that fails leaves an older file as it was, and never a partial one. What has gone into a
//! device or a pipe cannot be taken back.
//!
//! Whoever waits for a reader of a FIFO, until it comes or until it has read, can be interrupted: it is
//! opened and written to without blocking, again and again.

use super::pipe::{LOOK_EVERY, is_pipe};
use crate::MayReplace;
use entasis_engine::exec::CancelFlag;
use entasis_vector::{Error, Result};
use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Links that are followed before they are taken for a circle, as by the system.
const MOST_LINKS: usize = 40;

/// A file that is being written.
#[derive(Debug)]
pub(super) enum Target {
    /// A file that will replace the one at `path`.
    Beside { temporary: PathBuf, path: PathBuf, may_replace: MayReplace },
    /// A device or a pipe.
    Into,
}

impl Target {
    /// Opens what is to be written at the path, and the file to write to. Waiting for a reader ends when
    /// `cancel` is raised.
    ///
    /// # Errors
    /// Input, if that is no place for a file; I/O; interrupted.
    pub(super) fn open(
        path: &str,
        cancel: &CancelFlag,
        may_replace: MayReplace,
    ) -> Result<(Target, TargetFile)> {
        let failed = |e: io::Error| match cancel.is_raised() {
            true => Error::interrupted(),
            false => Error::io(format!("'{path}'"), &e),
        };
        let of = |file: File| TargetFile { file, cancel: cancel.clone() };
        if let Some(file) = descriptor(path).map_err(failed)? {
            return Ok((Target::Into, of(file)));
        }
        let followed = follow(Path::new(path)).map_err(failed)?;
        let old = match std::fs::metadata(&followed) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if old.as_ref().is_some_and(is_pipe) {
            return Ok((Target::Into, of(open_pipe(&followed, cancel).map_err(failed)?)));
        }
        may_replace(&followed)?;
        let Some(name) = followed.file_name().filter(|_| !old.as_ref().is_some_and(|old| old.is_dir()))
        else {
            return Err(Error::input(format!("'{path}' is not the path of a file")));
        };
        for _ in 0..16 {
            let own = format!(".{}.{:016x}.tmp", name.to_string_lossy(), RandomState::new().hash_one(()));
            let temporary = followed.with_file_name(own);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(error)),
                Ok(file) => {
                    let target = Target::Beside { temporary, path: followed, may_replace };
                    // Who could read the old file can read the new one, and nobody else.
                    if let Some(old) = old {
                        file.set_permissions(old.permissions()).map_err(failed)?;
                    }
                    return Ok((target, of(file)));
                }
            }
        }
        Err(Error::internal(format!("no free name beside '{path}'")))
    }

    /// Asks again whether the file at the path may be replaced, since it may have become another.
    ///
    /// # Errors
    /// Those of [`MayReplace`].
    pub(super) fn may_be_replaced(&self) -> Result<()> {
        match self {
            Target::Beside { path, may_replace, .. } => may_replace(path),
            Target::Into => Ok(()),
        }
    }

    /// Gives the file its name, once it is complete.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn commit(&self) -> io::Result<()> {
        match self {
            Target::Beside { temporary, path, .. } => std::fs::rename(temporary, path),
            Target::Into => Ok(()),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Target::Beside { temporary, .. } = self {
            // After a commit it no longer exists; otherwise nothing better can be done about a failure here.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// The file to write to.
#[derive(Debug)]
pub(super) struct TargetFile {
    file: File,
    cancel: CancelFlag,
}

impl Write for TargetFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pause = SHORT_PAUSE;
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&mut pause, &self.cancel)?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Time until the first look whether a pipe has been read.
const SHORT_PAUSE: Duration = Duration::from_micros(20);

/// Waits a little, and longer the next time.
fn wait(pause: &mut Duration, cancel: &CancelFlag) -> io::Result<()> {
    if cancel.is_raised() {
        return Err(io::Error::other("interrupted"));
    }
    thread::sleep(*pause);
    *pause = (*pause * 2).min(LOOK_EVERY);
    Ok(())
}

/// Opens a pipe or a device to write to, once it has a reader.
#[cfg(unix)]
fn open_pipe(path: &Path, cancel: &CancelFlag) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let is_fifo = std::fs::metadata(path)?.file_type().is_fifo();
    let mut pause = SHORT_PAUSE;
    loop {
        match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
            // Nobody reads it.
            Err(error) if is_fifo && error.raw_os_error() == Some(libc::ENXIO) => wait(&mut pause, cancel)?,
            opened => return opened,
        }
    }
}

#[cfg(not(unix))]
fn open_pipe(path: &Path, _: &CancelFlag) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// The path that symbolic links at the end of `path` lead to, whether there is a file or not.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            // A relative link begins where it is.
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// A descriptor of this process, if `path` names one. Replacing the file behind it would leave the process
/// writing to a file without a name.
fn descriptor(path: &str) -> io::Result<Option<File>> {
    let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| path.strip_prefix(folder));
    match (path, number) {
        #[cfg(unix)]
        ("/dev/stdout", _) | (_, Some("1")) => {
            use std::os::fd::AsFd;
            // What the program has printed comes first.
            io::stdout().flush()?;
            Ok(Some(File::from(io::stdout().as_fd().try_clone_to_owned()?)))
        }
        #[cfg(unix)]
        ("/dev/stderr", _) | (_, Some("2")) => {
            use std::os::fd::AsFd;
            Ok(Some(File::from(io::stderr().as_fd().try_clone_to_owned()?)))
        }
        (_, Some(number)) if number.parse::<u32>().is_ok() => {
            OpenOptions::new().append(true).open(path).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::test_files::Directory;
    use entasis_vector::ErrorKind;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &str, text: &str) -> Result<()> {
        let (target, mut file) = Target::open(path, &CancelFlag::default(), |_| Ok(()))?;
        file.write_all(text.as_bytes()).unwrap();
        target.commit().unwrap();
        Ok(())
    }

    #[test]
    fn files_are_replaced_and_links_and_devices_stay() {
        let directory = Directory::new();
        let old = directory.write("old", "old");
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o600)).unwrap();
        let links = [("link", "old"), ("link of a link", "link"), ("dangling", "new")];
        for (name, to) in links {
            symlink(to, directory.path(name)).unwrap();
        }
        for (name, file) in [("old", "old"), ("link", "old"), ("link of a link", "old"), ("dangling", "new")]
        {
            write(&directory.path(name), name).unwrap();
            assert_eq!(std::fs::read_to_string(directory.path(file)).unwrap(), name);
        }
        for (name, to) in links {
            assert_eq!(std::fs::read_link(directory.path(name)).unwrap(), Path::new(to));
        }
        assert_eq!(std::fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o600);
        symlink("circle", directory.path("circle")).unwrap();
        assert!(write(&directory.path("circle"), "").is_err());
        write("/dev/null", "gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert!(write(&directory.path(""), "").is_err());
        assert_eq!(directory.names().len(), 6, "{:?}", directory.names());
    }

    #[test]
    fn a_descriptor_is_written_into_where_it_stands() {
        use std::os::fd::AsRawFd;
        let directory = Directory::new();
        let mut file =
            OpenOptions::new().read(true).append(true).open(directory.write("a", "before\n")).unwrap();
        write(&format!("/dev/fd/{}", file.as_raw_fd()), "after\n").unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before\nafter\n");
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let directory = Directory::new();
        let path = directory.write("a", "old");
        drop(Target::open(&path, &CancelFlag::default(), |_| Ok(())).unwrap());
        assert_eq!(directory.names(), ["a"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    fn waiting_for_a_reader_of_a_fifo_ends_with_an_interrupt() {
        let directory = Directory::new();
        let path = directory.path("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let cancel = CancelFlag::default();
        cancel.raise();
        assert_eq!(Target::open(&path, &cancel, |_| Ok(())).unwrap_err().kind(), ErrorKind::Interrupted);
        cancel.clear();
        let bytes: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        thread::scope(|scope| {
            // It comes later, and reads all of it.
            let reader = scope.spawn(|| std::fs::read(&path).unwrap());
            let (_, mut file) = Target::open(&path, &cancel, |_| Ok(())).unwrap();
            file.write_all(&bytes).unwrap();
            drop(file);
            assert!(reader.join().unwrap() == bytes);
        });
        thread::scope(|scope| {
            // It comes, and reads nothing until the writer has been interrupted.
            let reader = scope.spawn(|| File::open(&path).unwrap());
            let (_, mut file) = Target::open(&path, &cancel, |_| Ok(())).unwrap();
            let _reader = reader.join().unwrap();
            cancel.raise();
            assert!(file.write_all(&bytes).is_err());
        });
    }
}
