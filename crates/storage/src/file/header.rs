//! Preamble and headers of a data file.
//!
//! Bytes as read are [`Unverified`] until their checksum, place and numbers have been checked; only then do
//! they become a [`Header`]. One of the two headers may be torn, because the machine stopped while it was
//! being written: then the other is the newest. If a header is intact but of an unknown version, the file is
//! refused.
//!
//! Each offset is the sum of the sizes before it, checked at compile time.

use crate::backend::bytes::{checksum, put_at, u32_at, u64_at};
use crate::backend::{Backend, SECTOR, damaged, refused};
use entasis_vector::{Error, ErrorKind, Result};

/// Bytes of a page. Extents begin at multiples of it.
pub const PAGE: u64 = 4096;
/// The first page after the headers.
pub(super) const FIRST_PAGE: u64 = 3;
/// The number of the first header.
pub(super) const FIRST_NUMBER: u64 = 2;
/// The version that is written, and the newest one that is read.
const VERSION: u32 = 1;
/// Features known to this version that a reader must know.
const REQUIRED: u64 = 0;
/// Features known to this version that a reader need not know.
const OPTIONAL: u64 = 0;
/// References to extents in a header.
pub const ROOTS: usize = 8;

mod preamble {
    pub(super) const MAGIC: [u8; 8] = *b"\x89ENTASIS";
    pub(super) const VERSION: usize = MAGIC.len();
    pub(super) const PAGE: usize = VERSION + 4;
    pub(super) const ID: usize = PAGE + 4;
    pub(super) const CHECKSUM: usize = ID + 16 + 24;
    pub(super) const BYTES: usize = CHECKSUM + 8;
}

mod place {
    use super::ROOTS;

    pub(super) const MAGIC: [u8; 8] = *b"ENTAHEAD";
    pub(super) const NUMBER: usize = MAGIC.len();
    pub(super) const VERSION: usize = NUMBER + 8;
    pub(super) const STATE: usize = VERSION + 4;
    pub(super) const REQUIRED: usize = STATE + 4;
    pub(super) const OPTIONAL: usize = REQUIRED + 8;
    pub(super) const LOG_POSITION: usize = OPTIONAL + 8;
    pub(super) const SEGMENT_BYTES: usize = LOG_POSITION + 8;
    pub(super) const PAGES: usize = SEGMENT_BYTES + 4 + 4;
    pub(super) const ROOT: usize = PAGES + 8;
    pub(super) const ROOT_BYTES: usize = 24;
    pub(super) const CHECKSUM: usize = ROOT + ROOTS * ROOT_BYTES;
    pub(super) const BYTES: usize = CHECKSUM + 8;
}

/// True if a file begins as a database does, whether or not it can be read.
///
/// # Errors
/// Those of the medium.
pub fn is_database(backend: &dyn Backend) -> std::io::Result<bool> {
    let mut begin = [0; preamble::MAGIC.len()];
    if backend.length()? < begin.len() as u64 {
        return Ok(false);
    }
    backend.read(0, &mut begin)?;
    Ok(begin == preamble::MAGIC)
}

/// Bytes of the preamble that are in use.
pub(super) const PREAMBLE_BYTES: usize = preamble::BYTES;
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = place::BYTES;

// These sizes are those in docs/design/file-format.md; a header fits a sector, so that it is written whole or
// not at all.
const _: () = assert!(preamble::CHECKSUM == 56 && preamble::BYTES == 64);
const _: () =
    assert!(place::PAGES == 56 && place::ROOT == 64 && place::CHECKSUM == 256 && HEADER_BYTES <= SECTOR);

/// Identifies a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseId(pub [u8; 16]);

impl DatabaseId {
    /// The seed of checksums.
    pub(crate) fn seed(self) -> u64 {
        u64_at(&self.0, 0)
    }
}

/// Where a payload is; the default is nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// The first byte in the file.
    pub offset: u64,
    /// Bytes of the payload; none if there is no extent.
    pub bytes: u64,
    /// The checksum of the payload.
    pub checksum: u64,
}

impl Extent {
    /// Bytes of a reference.
    pub const SIZE: usize = place::ROOT_BYTES;

    /// The reference as it is written.
    pub fn to_bytes(self) -> [u8; Extent::SIZE] {
        let mut bytes = [0; Extent::SIZE];
        put_at(&mut bytes, 0, &self.offset.to_le_bytes());
        put_at(&mut bytes, 8, &self.bytes.to_le_bytes());
        put_at(&mut bytes, 16, &self.checksum.to_le_bytes());
        bytes
    }

    /// The inverse of [`Extent::to_bytes`]. It is verified only when the payload is read.
    pub fn from_bytes(bytes: &[u8; Extent::SIZE]) -> Extent {
        Extent { offset: u64_at(bytes, 0), bytes: u64_at(bytes, 8), checksum: u64_at(bytes, 16) }
    }

    /// True if an extent is plausible, without a look at the file.
    pub(super) fn is_well_placed(self) -> bool {
        self.offset.is_multiple_of(PAGE) && self.offset >= FIRST_PAGE * PAGE
    }
}

/// The roots, by their index in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The catalog: names and their objects.
    Catalog = 0,
    /// Rows.
    Tables = 1,
    /// Statistics of columns.
    Statistics = 2,
    /// The costs that `CALIBRATE` measured.
    Costs = 3,
    /// Free runs of pages.
    FreeSpace = 4,
}

/// Whether a state needs the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Later commits are in the log, which must exist.
    Open = 0,
    /// The database was closed: this state is complete, and the log may be missing.
    Closed = 1,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading and writing, exclusive of other writers.
    Write,
    /// For reading only, perhaps beside others.
    Read,
}

/// What a new state consists of, besides its extents.
#[derive(Debug, Clone, Copy)]
pub struct Contents {
    /// The root of each part. The root of the free space is set by [`super::DataFile::commit`].
    pub roots: [Extent; ROOTS],
    /// The position from which on the log is replayed.
    pub log_position: u64,
    /// Whether it needs the log.
    pub state: State,
}

/// One state of the database, as it was verified or is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Counts states, from 2 on.
    pub number: u64,
    /// Whether it needs the log.
    pub state: State,
    /// Features that its readers must know.
    pub required: u64,
    /// Features that its writers must know.
    pub optional: u64,
    /// The position from which on the log is replayed.
    pub log_position: u64,
    /// Bytes of a segment of the log.
    pub segment_bytes: u32,
    /// Pages of the file, without a free tail.
    pub pages: u64,
    /// Where its parts begin, by [`Root`].
    pub roots: [Extent; ROOTS],
}

impl Header {
    /// That of an empty database.
    pub(super) fn first(segment_bytes: u32) -> Header {
        Header {
            number: FIRST_NUMBER,
            state: State::Closed,
            required: 0,
            optional: 0,
            log_position: 0,
            segment_bytes,
            pages: FIRST_PAGE,
            roots: [Extent::default(); ROOTS],
        }
    }

    /// True if no state has been committed since the file was created.
    pub(super) fn is_first(&self) -> bool {
        self.number == FIRST_NUMBER
    }

    /// The one behind it.
    pub(super) fn next(&self, contents: Contents, pages: u64) -> Header {
        let Contents { roots, log_position, state } = contents;
        Header { number: self.number + 1, state, log_position, pages, roots, ..*self }
    }

    /// Where it is written.
    pub(super) fn offset(&self) -> u64 {
        (1 + self.number % 2) * PAGE
    }

    /// As it is written.
    pub(super) fn bytes(&self, id: DatabaseId) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put_at(&mut bytes, 0, &place::MAGIC);
        put_at(&mut bytes, place::NUMBER, &self.number.to_le_bytes());
        put_at(&mut bytes, place::VERSION, &VERSION.to_le_bytes());
        put_at(&mut bytes, place::STATE, &(self.state as u32).to_le_bytes());
        put_at(&mut bytes, place::REQUIRED, &self.required.to_le_bytes());
        put_at(&mut bytes, place::OPTIONAL, &self.optional.to_le_bytes());
        put_at(&mut bytes, place::LOG_POSITION, &self.log_position.to_le_bytes());
        put_at(&mut bytes, place::SEGMENT_BYTES, &self.segment_bytes.to_le_bytes());
        put_at(&mut bytes, place::PAGES, &self.pages.to_le_bytes());
        for (number, root) in self.roots.iter().enumerate() {
            put_at(&mut bytes, place::ROOT + number * place::ROOT_BYTES, &root.to_bytes());
        }
        let sum = checksum(&bytes[..place::CHECKSUM], id.seed() ^ self.offset());
        put_at(&mut bytes, place::CHECKSUM, &sum.to_le_bytes());
        bytes
    }
}

/// Bytes of a header's page, of which nothing is known.
pub(super) struct Unverified {
    bytes: [u8; HEADER_BYTES],
    offset: u64,
}

/// What is wrong with a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It is torn, rotten, or was never written.
    NotWhole,
    /// It is whole, and of a version that is not known.
    Newer(u32),
    /// It is whole, and readers must know features that are not known.
    Required(u64),
    /// It is whole, and writers must know features that are not known.
    Optional(u64),
    /// It is whole, of this number, and what it says cannot be.
    Senseless(u64, &'static str),
}

impl Unverified {
    pub(super) fn new(bytes: [u8; HEADER_BYTES], offset: u64) -> Unverified {
        Unverified { bytes, offset }
    }

    /// The header, if it is one that stands where it belongs in a file of so many bytes.
    pub(super) fn verify(self, id: DatabaseId, access: Access, file_bytes: u64) -> Result<Header, Flaw> {
        let (bytes, offset) = (&self.bytes, self.offset);
        let sum = checksum(&bytes[..place::CHECKSUM], id.seed() ^ offset);
        if !bytes.starts_with(&place::MAGIC) || sum != u64_at(bytes, place::CHECKSUM) {
            return Err(Flaw::NotWhole);
        }
        let version = u32_at(bytes, place::VERSION);
        if version > VERSION {
            return Err(Flaw::Newer(version));
        }
        let (required, optional) = (u64_at(bytes, place::REQUIRED), u64_at(bytes, place::OPTIONAL));
        if required & !REQUIRED != 0 {
            return Err(Flaw::Required(required & !REQUIRED));
        }
        if access == Access::Write && optional & !OPTIONAL != 0 {
            return Err(Flaw::Optional(optional & !OPTIONAL));
        }
        let number = u64_at(bytes, place::NUMBER);
        let state = match u32_at(bytes, place::STATE) {
            0 => State::Open,
            1 => State::Closed,
            _ => return Err(Flaw::Senseless(number, "its state is none")),
        };
        let mut roots = [Extent::default(); ROOTS];
        for (number, root) in roots.iter_mut().enumerate() {
            let at = place::ROOT + number * place::ROOT_BYTES;
            let mut reference = [0; Extent::SIZE];
            reference.copy_from_slice(&bytes[at..at + Extent::SIZE]);
            *root = Extent::from_bytes(&reference);
        }
        let header = Header {
            number,
            state,
            required,
            optional,
            log_position: u64_at(bytes, place::LOG_POSITION),
            segment_bytes: u32_at(bytes, place::SEGMENT_BYTES),
            pages: u64_at(bytes, place::PAGES),
            roots,
        };
        let end = header.pages.checked_mul(PAGE);
        let ends = |root: &Extent| root.offset.checked_add(root.bytes);
        let fits = |root: &Extent| {
            root.bytes == 0 || (root.is_well_placed() && ends(root) <= end && ends(root).is_some())
        };
        if header.offset() != offset {
            Err(Flaw::Senseless(number, "it belongs elsewhere"))
        } else if header.pages < FIRST_PAGE || end.is_none_or(|end| end > file_bytes) {
            Err(Flaw::Senseless(number, "the file is shorter than it says"))
        } else if !roots.iter().all(fits) {
            Err(Flaw::Senseless(number, "a root lies outside of the file"))
        } else {
            Ok(header)
        }
    }
}

/// The preamble.
pub(super) struct Preamble;

impl Preamble {
    /// As it is written.
    pub(super) fn bytes(id: DatabaseId) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        put_at(&mut bytes, 0, &preamble::MAGIC);
        put_at(&mut bytes, preamble::VERSION, &VERSION.to_le_bytes());
        put_at(&mut bytes, preamble::PAGE, &(PAGE as u32).to_le_bytes());
        put_at(&mut bytes, preamble::ID, &id.0);
        let sum = checksum(&bytes[..preamble::CHECKSUM], 0);
        put_at(&mut bytes, preamble::CHECKSUM, &sum.to_le_bytes());
        bytes
    }

    /// The id of the database.
    fn verify(backend: &dyn Backend, bytes: &[u8; PREAMBLE_BYTES]) -> Result<DatabaseId> {
        let name = backend.name();
        if !bytes.starts_with(&preamble::MAGIC) {
            return Err(Error::input(format!("{name} is not an Entasis database")));
        }
        let version = u32_at(bytes, preamble::VERSION);
        let is_whole = checksum(&bytes[..preamble::CHECKSUM], 0) == u64_at(bytes, preamble::CHECKSUM);
        // A newer version may have another checksum. The version is where it is in all of them.
        if version > VERSION {
            return Err(newer(name, version));
        }
        if !is_whole || u32_at(bytes, preamble::PAGE) != PAGE as u32 {
            return Err(damaged(backend, 0, "the preamble"));
        }
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[preamble::ID..preamble::ID + 16]);
        Ok(DatabaseId(id))
    }
}

/// Both headers as they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Headers([[u8; HEADER_BYTES]; 2]);

/// Those of no file.
impl Default for Headers {
    fn default() -> Headers {
        Headers([[0; HEADER_BYTES]; 2])
    }
}

impl Headers {
    /// The bytes of a header, as they were read.
    pub(super) fn bytes_of(&self, header: &Header) -> &[u8; HEADER_BYTES] {
        &self.0[(header.number % 2) as usize]
    }
}

/// The id of a database.
pub fn id(backend: &dyn Backend) -> Result<DatabaseId> {
    let io = |error| refused(backend, &error);
    let file_bytes = backend.length().map_err(io)?;
    let mut bytes = [0; PREAMBLE_BYTES];
    if file_bytes < PREAMBLE_BYTES as u64 {
        return Err(Error::input(format!("{} is not an Entasis database", backend.name())));
    }
    backend.read(0, &mut bytes).map_err(io)?;
    let id = Preamble::verify(backend, &bytes)?;
    if file_bytes < FIRST_PAGE * PAGE {
        return Err(damaged(backend, file_bytes, "it ends within the headers"));
    }
    Ok(id)
}

/// The bytes of both headers. Whoever writes to the file beside may tear one of them.
pub(super) fn read_both(backend: &dyn Backend) -> Result<Headers> {
    // At once, since a look at a file that has not changed is little more than this.
    let mut bytes = [0; PAGE as usize + HEADER_BYTES];
    backend.read(PAGE, &mut bytes).map_err(|error| refused(backend, &error))?;
    let mut headers = Headers::default();
    headers.0[0].copy_from_slice(&bytes[..HEADER_BYTES]);
    headers.0[1].copy_from_slice(&bytes[PAGE as usize..]);
    Ok(headers)
}

/// The newest state of a database whose headers were read.
pub(super) fn newest_of(
    backend: &dyn Backend,
    headers: &Headers,
    id: DatabaseId,
    access: Access,
) -> Result<Header> {
    let file_bytes = backend.length().map_err(|error| refused(backend, &error))?;
    let (mut whole, mut senseless) = (Vec::new(), Vec::new());
    for (bytes, offset) in headers.0.iter().zip([PAGE, 2 * PAGE]) {
        let name = backend.name();
        match Unverified::new(*bytes, offset).verify(id, access, file_bytes) {
            Ok(header) => whole.push(header),
            Err(Flaw::NotWhole) => {}
            Err(Flaw::Newer(version)) => return Err(newer(name, version)),
            Err(Flaw::Required(bits)) => {
                let message =
                    format!("{name} has features that this version of Entasis cannot read (bits {bits:#x})");
                return Err(Error::new(ErrorKind::NotSupported, message));
            }
            Err(Flaw::Optional(bits)) => {
                let message =
                    format!("{name} has features that this version of Entasis cannot write (bits {bits:#x})");
                return Err(Error::new(ErrorKind::NotSupported, message).with_hint("open it to be read only"));
            }
            Err(Flaw::Senseless(number, what)) => senseless.push((number, offset, what)),
        }
    }
    let newest = whole.into_iter().max_by_key(|header| header.number);
    // For the older one the file may be too short: it was cut behind the newer one.
    let is_newer = |number: u64| newest.is_none_or(|header| number > header.number);
    if let Some(&(_, offset, what)) = senseless.iter().find(|(number, ..)| is_newer(*number)) {
        return Err(damaged(backend, offset, what));
    }
    newest.ok_or_else(|| damaged(backend, PAGE, "neither header is whole"))
}

/// The file is of a version that is not known.
fn newer(name: &str, version: u32) -> Error {
    let message = format!(
        "{name} was written by a newer version of Entasis (format {version}; this one reads up to {VERSION})"
    );
    Error::new(ErrorKind::NotSupported, message)
}
