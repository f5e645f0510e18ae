//! Checkpoints: saving the state of a database in its data file, and reading it back
//! (docs/design/file-format.md, "What the roots hold").
//!
//! ```text
//! catalog, tables ──▶ moment ──▶ write ──▶ file      what has changed since the last record
//!                     record ◀─────┘
//!                     record ◀── read ◀─── file      all of it, when the file is opened
//! ```
//! 1. [`Moment::take`] pins the names, all tables and the position of the log, under the locks of all of
//!    them. This takes microseconds, as `BEGIN` does.
//! 2. [`checkpoint`] writes what is not in the file yet, while readers and writers go on, and then makes it
//!    the newest state ([`DataFile::commit`]). If it fails before, what it wrote is given back.
//! 3. [`open`] reads the newest state, and makes the catalog and its tables of it.
//!
//! Rows, names and declarations come back unchanged, and blocks in the same encoding and size. Temporary
//! objects are not saved.
//!
//! | module | |
//! |---|---|
//! | `write`, `group` | write tables and their row groups |
//! | `plan`, `data`, `extents` | what stays where it is; what is written, and where |
//! | `read` | reads tables and their row groups |
//! | `record`, `verify` | what the last checkpoint wrote, and what of it is unchanged |
//! | `moment` | the state that a checkpoint saves |
//! | `objects`, `declared` | the catalog as bytes |
//! | `costs` | what `CALIBRATE` found as bytes |
//! | `names`, `images` | changes of names for the log, with the rows of tables that are new |
//! | `heirs` | tables that are made of others with other columns, as bytes |
//! | `loads`, `pieces`, `stored` | many rows that are added to a table, for the log; what the file has of them |
//! | `recover` | a file and its log: the state behind the last commit |
//! | `follow` | the same beside another process that writes to them, again and again |
//! | `replay` | what a commit of the log did, done once more |
//! | `batches` | the same with many commits at once, where nobody else knows the tables |
//! | `manifest` | what is kept of a table beside its blocks, as bytes |
//! | `counted`, `fences` | what was counted of a row group, and fences, as bytes |
//! | `source` | a cursor over bytes that are not trusted |
//!
//! Not here: when checkpoints are made, how the log is kept ([`crate::wal`]). Checkpoints of one file must
//! not overlap.

mod batches;
mod checkpoint_state;
mod costs;
mod counted;
mod data;
mod ddl_records;
mod extents;
mod fences;
mod grid;
mod group;
mod heirs;
mod images;
mod loads;
mod manifest;
mod objects;
mod pieces;
mod plan;
mod read;
mod reader;
mod record;
mod recover;
mod replay;
mod schema_codec;
mod source;
mod stored;
mod verify;
mod write;

#[cfg(test)]
mod tests;

pub use checkpoint_state::Moment;
pub use costs::MachineCosts;
pub use ddl_records::{NameChanges, log_all};
pub use images::Images;
pub use loads::Loads;
pub use reader::{FilePart, Files, Follower, News, lost_log};
pub use record::Checkpointed;
pub use recover::{Recovered, recover};

use crate::backend::bytes::push_varint;
use crate::catalog::{Catalog, CatalogVersion, IfExists};
use crate::definition::ObjectId;
use crate::file::{Contents, DataFile, Extent, Header, Root, State};
use crate::table::Table;
use entasis_vector::Result;
use extents::ExtentWriter;
use objects::Relation;
use read::Unread;
use source::Source;
use std::collections::BTreeMap;
use std::sync::Arc;
use stored::Stored;

/// Makes the state of a moment the newest one of a file. `last` is what the checkpoint before returned, or
/// [`open`]; the default for a file that was just created. The log must have been synced up to the moment's
/// position.
///
/// # Errors
/// I/O. Then the newest state in the file is either the one before or this one, and it is not known which.
pub fn checkpoint(
    file: &DataFile,
    moment: &Moment,
    last: &Checkpointed,
    state: State,
) -> Result<Checkpointed> {
    let mut writer = ExtentWriter::new(file, file.tail(moment.length));
    let last = &last.with(&moment.images, &moment.loads);
    let written = match write(&mut writer, moment, last, state) {
        Ok(written) => written,
        Err(error) => {
            writer.abandon();
            return Err(error);
        }
    };
    let new = written.extents();
    file.reach(new.values().copied());
    let old = last.extents();
    old.into_iter().filter(|(at, _)| !new.contains_key(at)).for_each(|(_, extent)| file.give_up(extent));
    let mut roots = file.header().roots;
    [roots[Root::Catalog as usize], roots[Root::Tables as usize], roots[Root::Costs as usize]] =
        written.roots;
    file.commit(Contents { roots, log_position: moment.log_position, state })?;
    Ok(written)
}

/// Writes all extents of a state but that of the map of free space.
fn write(
    writer: &mut ExtentWriter<'_>,
    moment: &Moment,
    last: &Checkpointed,
    state: State,
) -> Result<Checkpointed> {
    let mut tables = BTreeMap::new();
    for (snapshot, round) in &moment.tables {
        let table = snapshot.table();
        writer.look_in(Stored::of(&last.loads, &table.lineage().members()));
        let written = write::table(writer, snapshot, *round, last.record_of(table))?;
        tables.insert(table.object(), written);
    }
    writer.look_in(Stored::default());
    let mut list = Vec::new();
    push_varint(&mut list, tables.len() as u64);
    for (id, table) in &tables {
        push_varint(&mut list, id.number());
        list.extend(table.manifest.to_bytes());
    }
    let catalog = writer.put(&objects::encode(&moment.names, state))?;
    let (costs, written) = match &moment.costs {
        Some(costs) if Some(costs) != last.costs.as_ref() => (Some(costs), writer.put(&costs.encode())?),
        _ => (last.costs.as_ref(), last.roots[2]),
    };
    let roots = [catalog, writer.put(&list)?, written];
    Ok(Checkpointed { tables, roots, loads: Vec::new(), costs: costs.cloned() })
}

/// The catalog of the newest state of a file, with all its tables, and what the next checkpoint has to know.
///
/// # Errors
/// I/O; corruption, with the place.
pub fn open(file: &DataFile) -> Result<(Catalog, Checkpointed)> {
    let (names, written) = read_all(file, &file.header(), &mut |_, _| None)?;
    Ok((Catalog::of(names), written))
}

/// The names of a state of a file, with all their tables: those that `known` does not give by what is said of
/// them and where their manifest is.
fn read_all(
    file: &DataFile,
    header: &Header,
    known: &mut dyn FnMut(&Relation, Extent) -> Option<Arc<Table>>,
) -> Result<(CatalogVersion, Checkpointed)> {
    let roots = [Root::Catalog, Root::Tables, Root::Costs].map(|root| header.roots[root as usize]);
    let mut reader = Opening { file, known, manifests: BTreeMap::new(), unread: Vec::new() };
    let mut names = CatalogVersion::default();
    if roots[0].bytes > 0 {
        reader.read_manifests(roots[1])?;
        let bytes = file.read(roots[0])?;
        let mut source = Source::new(file, roots[0], &bytes);
        let (next, objects) = objects::decode(&mut source)?;
        for object in objects {
            let entry = object.renewed(&names).entry(&mut |relation| reader.table(relation, roots[0]))?;
            let name = entry.name().to_owned();
            let is_new = names.add(entry, IfExists::Fail).is_ok();
            source.check(is_new, &format!("there is another object named {name}"))?;
        }
        ObjectId::reserve(next);
    }
    let Opening { manifests, unread, .. } = reader;
    if !manifests.is_empty() {
        return Err(file.damaged(roots[1].offset, "rows of a table that there is not"));
    }
    let tables = read::rows(file, unread)?.into_iter().collect();
    let costs = MachineCosts::read(file, roots[2])?.map(Arc::new);
    Ok((names, Checkpointed { tables, roots, loads: Vec::new(), costs }))
}

/// What has been read of a file, and what is still to be read.
struct Opening<'a> {
    file: &'a DataFile,
    /// Tables that need not be read.
    known: &'a mut dyn FnMut(&Relation, Extent) -> Option<Arc<Table>>,
    /// Of the tables that no object has had yet.
    manifests: BTreeMap<ObjectId, Extent>,
    /// Tables whose rows are to be read.
    unread: Vec<Unread>,
}

impl Opening<'_> {
    fn read_manifests(&mut self, list: Extent) -> Result<()> {
        let bytes = self.file.read(list)?;
        let mut source = Source::new(self.file, list, &bytes);
        let all = source.list(|source| Ok((ObjectId::of(source.varint()?), source.extent()?)))?;
        source.end()?;
        let count = all.len();
        self.manifests = all.into_iter().collect();
        source.check(self.manifests.len() == count, "a table is there twice")
    }

    /// The table of a relation, which gets its rows when all names are known.
    fn table(&mut self, relation: Relation, catalog: Extent) -> Result<Arc<Table>> {
        let missing = || self.file.damaged(catalog.offset, "a table whose rows are missing, or another's");
        let manifest = self.manifests.remove(&relation.id).ok_or_else(missing)?;
        if let Some(table) = (self.known)(&relation, manifest) {
            return Ok(table);
        }
        let unread = Unread::new(self.file, relation, manifest)?;
        let table = unread.table().clone();
        self.unread.push(unread);
        Ok(table)
    }
}
