"""What a disk would hold after a power loss, from a trace of `rec.c`.

The model is not that of the project's own disk for tests, and shares nothing with it:

- a file has the bytes that were synced, and writes and changes of length that were not;
- a sync makes those of its file durable. One that failed loses them, for ever: the system's cache shows them,
  and no later sync writes them (Linux marks the pages clean);
- a name that was created, renamed, linked or removed is durable once its directory was synced.

At a power loss (`Disk.crash`), of what was not synced there is nothing, all, a beginning, or any part, sector
by sector; and the same of names.
"""

import shutil
import struct
from pathlib import Path

CREATE, WRITE, TRUNCATE, SYNC, SYNC_DIRECTORY, RENAME, UNLINK, MARK, FAILED_SYNC, FOUND, LINK = range(1, 12)
HEADER, SECTOR = 32, 512
KINDS = ["nothing", "all", "beginning", "parts"]


def events(path):
    """The events of a trace: kind, file, number, and two texts."""
    data, at = Path(path).read_bytes(), 0
    while at + HEADER <= len(data):
        file, number, one, other = struct.unpack_from("<QQII", data, at + 8)
        start = at + HEADER
        yield data[at], file, number, data[start : start + one], data[start + one : start + one + other]
        at = start + one + other


class Disk:
    def __init__(self):
        #: By file: the bytes that are durable, and the operations since.
        self.durable, self.pending = {}, {}
        #: The file of each name, as far as names are durable.
        self.names = {}
        #: Operations on names since the sync of their directory.
        self.renamed = []
        #: Files that several processes have numbered, and the newest file of each inode.
        self.same, self.inodes = {}, {}
        #: Files that were found before the record says that they were created: processes are recorded side by side.
        self.found_early = set()

    def apply(self, event):
        kind, file, number, one, other = event
        one_name, other_name = (text.decode(errors="replace") if kind in NAMED else "" for text in (one, other))
        if kind == FOUND and number in self.inodes:
            self.same[file] = self.inodes[number]
        elif kind == FOUND:
            self.inodes[number] = file
            self.found_early.add(file)
            self.durable[file], self.pending[file] = bytearray(), []
        elif kind == CREATE and self.inodes.get(number) in self.found_early:
            self.same[file] = self.inodes[number]
            self.found_early.remove(self.inodes[number])
            self.name((CREATE, one_name, self.inodes[number]))
        elif kind == CREATE:
            self.inodes[number] = file
            self.durable[file], self.pending[file] = bytearray(), []
            self.name((CREATE, one_name, file))
        file = self.same.get(file, file)
        if kind in (CREATE, FOUND):
            return
        if kind in (RENAME, LINK, UNLINK):
            self.name((kind, one_name, other_name))
        elif kind == WRITE:
            self.pending[file].append((WRITE, number, one))
        elif kind == TRUNCATE:
            self.pending[file].append((TRUNCATE, number, b""))
        elif kind == SYNC:
            put(self.durable[file], self.pending[file])
            self.pending[file] = []
        elif kind == FAILED_SYNC:
            self.pending[file] = [operation for operation in self.pending[file] if operation[0] == TRUNCATE]
        elif kind == SYNC_DIRECTORY:
            synced = [operation for operation in self.renamed if directory_of(operation) == one_name]
            for operation in synced:
                rename(self.names, operation)
            self.renamed = [operation for operation in self.renamed if operation not in synced]

    def name(self, operation):
        self.renamed.append(operation)

    def crash(self, random, kind):
        """For each name after a power loss its file and that one's contents; `kind` says what there is of what was
        not synced."""
        share = random.choice([0.1, 0.5, 0.9])
        names = dict(self.names)
        for operation in some(self.renamed, random, kind, share):
            rename(names, operation)
        contents = {}
        for file in dict.fromkeys(names.values()):
            content, pending = bytearray(self.durable[file]), self.pending[file]
            put(content, torn(pending, random, share) if kind == "parts" else some(pending, random, kind, share))
            contents[file] = bytes(content)
        return {name: (file, contents[file]) for name, file in names.items()}


NAMED = {CREATE, RENAME, LINK, UNLINK, FOUND, SYNC_DIRECTORY}


def directory_of(operation):
    """The directory whose sync makes an operation durable. All are in one, but for files that are moved."""
    return str(Path(operation[1]).parent)


def rename(names, operation):
    kind, one, other = operation
    if kind == CREATE:
        names[one] = other
    elif kind == RENAME and one in names:
        names[other] = names.pop(one)
    elif kind == LINK and one in names:
        names[other] = names[one]
    elif kind == UNLINK:
        names.pop(one, None)


def put(content, operations):
    for kind, at, data in operations:
        if kind == TRUNCATE:
            del content[at:]
            content.extend(bytes(at - len(content)))
        else:
            content.extend(bytes(max(0, at - len(content))))
            content[at : at + len(data)] = data


def some(operations, random, kind, share):
    if kind in ("all", "nothing"):
        return operations if kind == "all" else []
    if kind == "beginning":
        return operations[: random.randint(0, len(operations))]
    return [operation for operation in operations if random.random() < share]


def torn(operations, random, share):
    """Any part of the operations; a third of the writes as a whole, a third not at all, the rest by sectors."""
    for operation in operations:
        kind, at, data = operation
        whole = random.random()
        if kind == TRUNCATE:
            if random.random() < share:
                yield operation
        elif whole < share / 2:
            yield operation
        elif whole >= 0.5:
            done = 0
            while done < len(data):
                count = min(SECTOR - (at + done) % SECTOR, len(data) - done)
                if random.random() < share:
                    yield WRITE, at + done, data[done : done + count]
                done += count


def write(files, base, target):
    """Writes files whose names begin with `base` to the directory `target`. Names of one file are hard links."""
    shutil.rmtree(target, ignore_errors=True)
    Path(target).mkdir(parents=True)
    written = {}
    for name, (file, content) in files.items():
        path = Path(str(target) + name[len(str(base)) :])
        path.parent.mkdir(parents=True, exist_ok=True)
        if file in written:
            path.hardlink_to(written[file])
        else:
            path.write_bytes(content)
            written[file] = path
