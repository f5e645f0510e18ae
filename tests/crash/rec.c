// Records what a process does to the files below a directory, and makes it fail or stop there: the independent
// disk of tests/crash (README.md). Preloaded into an unmodified program by LD_PRELOAD.
//
//     REC_DIR      the directory, absolute and without links; everything else passes through
//     REC_TRACE    the file to which events are appended, by all processes
//     REC_FAULT    "operation:n:action:argument": what happens at the n-th operation of a kind
//
// Nothing is synced in truth: what a power loss would leave behind is for the reader of the trace to say
// (disk.py), which knows what was synced when. An event is a header of 32 bytes (kind, file, number, lengths)
// and up to two texts. Files have numbers of their own, because inodes are used again; CREATE and FOUND say
// which inode a file has by then.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum event { CREATE = 1, WRITE, TRUNCATE, SYNC, SYNC_DIRECTORY, RENAME, UNLINK, MARK, FAILED_SYNC, FOUND, LINK };
enum operation { OP_SYNC, OP_WRITE, OP_TRUNCATE, OP_SYNC_DIRECTORY, OP_RENAME, OP_UNLINK, OP_OPEN, OPERATIONS };
enum action { FAIL = 1, KILL = 2, FAIL_FROM_NOW_ON = 4, HALF = 5 };
enum { MOST_FILES = 65536, MOST_KNOWN = 100000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static size_t directory_bytes;
static int trace = -1;
// The file of each open descriptor; 0 if it is of no interest.
static uint64_t files[MOST_FILES];
static char are_directories[MOST_FILES];
static struct { uint64_t inode, file; } known[MOST_KNOWN];
static int known_count;
static uint64_t next_file = 1;
static struct { int left, action, argument; } faults[OPERATIONS];

// One operation at a time, of all processes, so that the events of a record come in the order of the operations.
static void enter(void)
{
    pthread_mutex_lock(&lock);
    if (trace >= 0)
        flock(trace, LOCK_EX);
}

static void leave(void)
{
    int error = errno;
    if (trace >= 0)
        flock(trace, LOCK_UN);
    pthread_mutex_unlock(&lock);
    errno = error;
}

// Says that the n-th operation of a kind from now on fails, for a program that knows when.
int rec_fault(int operation, int n, int action, int argument)
{
    faults[operation].action = action;
    faults[operation].argument = argument;
    faults[operation].left = n;
    return 0;
}

// Each process numbers its files with its id, so that those of several differ.
static void number_files(void) { next_file = ((uint64_t)getpid() << 24) + 1; }

static void begin(void)
{
    static int has_begun;
    if (has_begun)
        return;
    has_begun = 1;
    const char *text = getenv("REC_DIR");
    if (text) {
        snprintf(directory, sizeof directory, "%s", text);
        directory_bytes = strlen(directory);
    }
    text = getenv("REC_TRACE");
    if (text) {
        int low = syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        // Out of the way of programs that close what they do not know.
        trace = fcntl(low, F_DUPFD_CLOEXEC, 900);
        if (trace < 0)
            trace = low;
        else
            syscall(SYS_close, low);
    }
    number_files();
    pthread_atfork(NULL, NULL, number_files);
    int operation, n, action, argument;
    text = getenv("REC_FAULT");
    if (text && sscanf(text, "%d:%d:%d:%d", &operation, &n, &action, &argument) == 4)
        rec_fault(operation, n, action, argument);
}

__attribute__((constructor)) static void constructed(void) { begin(); }

static void emit(enum event kind, uint64_t file, uint64_t number, const void *one, uint32_t one_bytes,
                 const void *other, uint32_t other_bytes)
{
    if (trace < 0)
        return;
    char header[32] = {kind};
    memcpy(header + 8, &file, 8);
    memcpy(header + 16, &number, 8);
    memcpy(header + 24, &one_bytes, 4);
    memcpy(header + 28, &other_bytes, 4);
    struct iovec parts[3] = {{header, 32}, {(void *)one, one_bytes}, {(void *)other, other_bytes}};
    syscall(SYS_writev, trace, parts, 3);
}

static void emit_names(enum event kind, const char *one, const char *other)
{
    emit(kind, 0, 0, one, strlen(one), other, other ? strlen(other) : 0);
}

void rec_mark(const char *text)
{
    enter();
    emit_names(MARK, text, NULL);
    leave();
}

// What is to happen to an operation: 0 nothing, FAIL with errno set, or HALF of it.
static int fault(enum operation operation)
{
    if (faults[operation].left <= 0 || --faults[operation].left > 0)
        return 0;
    switch (faults[operation].action) {
    case KILL:
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    case FAIL_FROM_NOW_ON:
        faults[operation].left = 1;
        // fall through
    case FAIL:
        errno = faults[operation].argument;
        return FAIL;
    default:
        return faults[operation].action;
    }
}

// The path of a name, absolute, its directory without links. The name itself may be a link.
static int absolute(int at, const char *name, char *out)
{
    char path[PATH_MAX], resolved[PATH_MAX];
    if (name[0] == '/') {
        snprintf(path, sizeof path, "%s", name);
    } else {
        char link[64];
        if (at == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t bytes = readlink(link, resolved, sizeof resolved - 1);
        if (bytes < 0)
            return -1;
        resolved[bytes] = 0;
        if (snprintf(path, sizeof path, "%s/%s", resolved, name) >= (int)sizeof path)
            return -1;
    }
    char *slash = strrchr(path, '/');
    if (slash == path) {
        strcpy(out, path);
        return 0;
    }
    *slash = 0;
    if (!realpath(path, resolved))
        return -1;
    return snprintf(out, PATH_MAX, "%s/%s", resolved, slash + 1) >= PATH_MAX ? -1 : 0;
}

static int is_below(const char *path)
{
    return directory_bytes && !strncmp(path, directory, directory_bytes) &&
           (path[directory_bytes] == '/' || path[directory_bytes] == 0);
}

static int is_known(int descriptor) { return descriptor >= 0 && descriptor < MOST_FILES && files[descriptor]; }

static uint64_t file_of(uint64_t inode)
{
    for (int i = known_count - 1; i >= 0; i--)
        if (known[i].inode == inode)
            return known[i].file;
    return 0;
}

static uint64_t new_file(uint64_t inode)
{
    if (known_count == MOST_KNOWN)
        abort();
    known[known_count].inode = inode;
    known[known_count].file = next_file;
    known_count++;
    return next_file++;
}

// ---- what a program calls ----------------------------------------------------------------------------------

static int opened(int at, const char *name, int flags, mode_t mode)
{
    begin();
    char path[PATH_MAX];
    if (!directory_bytes || absolute(at, name, path) || !is_below(path))
        return syscall(SYS_openat, at, name, flags, mode);
    enter();
    int descriptor = -1;
    if (fault(OP_OPEN) != FAIL) {
        struct stat status;
        int existed = stat(path, &status) == 0;
        descriptor = syscall(SYS_openat, at, name, flags, mode);
        if (descriptor >= 0 && descriptor < MOST_FILES && fstat(descriptor, &status) == 0) {
            are_directories[descriptor] = S_ISDIR(status.st_mode);
            files[descriptor] = are_directories[descriptor] ? (uint64_t)1 << 60 : file_of(status.st_ino);
            if (S_ISREG(status.st_mode) && !existed) {
                files[descriptor] = new_file(status.st_ino);
                emit(CREATE, files[descriptor], status.st_ino, path, strlen(path), NULL, 0);
            } else if (S_ISREG(status.st_mode)) {
                // Another process has created it: the reader knows it by its inode.
                if (!files[descriptor]) {
                    files[descriptor] = new_file(status.st_ino);
                    emit(FOUND, files[descriptor], status.st_ino, path, strlen(path), NULL, 0);
                }
                if (flags & O_TRUNC)
                    emit(TRUNCATE, files[descriptor], 0, NULL, 0, NULL, 0);
            }
        }
    }
    leave();
    return descriptor;
}

#define MODE \
    va_list arguments; \
    va_start(arguments, flags); \
    mode_t mode = va_arg(arguments, int); \
    va_end(arguments)

int open(const char *name, int flags, ...) { MODE; return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE; return opened(AT_FDCWD, name, flags | O_LARGEFILE, mode); }
int openat(int at, const char *name, int flags, ...) { MODE; return opened(at, name, flags, mode); }
int openat64(int at, const char *name, int flags, ...) { MODE; return opened(at, name, flags | O_LARGEFILE, mode); }

int close(int descriptor)
{
    if (!is_known(descriptor))
        return syscall(SYS_close, descriptor);
    enter();
    files[descriptor] = 0;
    int result = syscall(SYS_close, descriptor);
    leave();
    return result;
}

static ssize_t written(int descriptor, const void *bytes, size_t count, off_t offset)
{
    enter();
    int what = fault(OP_WRITE);
    ssize_t result = -1;
    if (what != FAIL) {
        result = syscall(SYS_pwrite64, descriptor, bytes, what == HALF ? (count + 1) / 2 : count, offset);
        if (result > 0)
            emit(WRITE, files[descriptor], offset, bytes, result, NULL, 0);
    }
    leave();
    return result;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset)
{
    if (!is_known(descriptor))
        return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
    return written(descriptor, bytes, count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset)
{
    return pwrite64(descriptor, bytes, count, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    if (!is_known(descriptor))
        return syscall(SYS_write, descriptor, bytes, count);
    int appends = fcntl(descriptor, F_GETFL) & O_APPEND;
    off_t offset = lseek(descriptor, 0, appends ? SEEK_END : SEEK_CUR);
    ssize_t result = written(descriptor, bytes, count, offset);
    if (result > 0)
        lseek(descriptor, offset + result, SEEK_SET);
    return result;
}

int ftruncate64(int descriptor, off64_t length)
{
    if (!is_known(descriptor))
        return syscall(SYS_ftruncate, descriptor, length);
    enter();
    int result = fault(OP_TRUNCATE) == FAIL ? -1 : syscall(SYS_ftruncate, descriptor, length);
    if (result == 0)
        emit(TRUNCATE, files[descriptor], length, NULL, 0, NULL, 0);
    leave();
    return result;
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

static int synced(int descriptor, long call)
{
    if (!is_known(descriptor))
        return syscall(call, descriptor);
    enter();
    int result = 0;
    if (are_directories[descriptor]) {
        char link[64], path[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t bytes = readlink(link, path, sizeof path - 1);
        path[bytes > 0 ? bytes : 0] = 0;
        if (fault(OP_SYNC_DIRECTORY) == FAIL)
            result = -1;
        else
            emit_names(SYNC_DIRECTORY, path, NULL);
    } else if (fault(OP_SYNC) == FAIL) {
        int error = errno;
        emit(FAILED_SYNC, files[descriptor], 0, NULL, 0, NULL, 0);
        errno = error;
        result = -1;
    } else {
        emit(SYNC, files[descriptor], 0, NULL, 0, NULL, 0);
    }
    leave();
    return result;
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

// Renames, or links with `kind` LINK. What the flags of renameat2 forbid fails before there is an event.
static int named(enum event kind, int from, const char *one, int to, const char *other, unsigned flags)
{
    char source[PATH_MAX], target[PATH_MAX];
    int is_ours = directory_bytes && !absolute(from, one, source) && !absolute(to, other, target) && is_below(source);
    enter();
    int result = -1;
    if (!is_ours || fault(OP_RENAME) != FAIL) {
        result = kind == LINK ? syscall(SYS_linkat, from, one, to, other, flags)
                              : syscall(SYS_renameat2, from, one, to, other, flags);
        if (is_ours && result == 0)
            emit_names(kind, source, target);
    }
    leave();
    return result;
}

int rename(const char *one, const char *other) { return named(RENAME, AT_FDCWD, one, AT_FDCWD, other, 0); }

int renameat(int from, const char *one, int to, const char *other) { return named(RENAME, from, one, to, other, 0); }

int renameat2(int from, const char *one, int to, const char *other, unsigned flags)
{
    return named(RENAME, from, one, to, other, flags);
}

int link(const char *one, const char *other) { return named(LINK, AT_FDCWD, one, AT_FDCWD, other, 0); }

int linkat(int from, const char *one, int to, const char *other, int flags)
{
    return named(LINK, from, one, to, other, flags);
}

int unlinkat(int at, const char *name, int flags)
{
    char path[PATH_MAX];
    int is_ours = directory_bytes && !absolute(at, name, path) && is_below(path);
    enter();
    int result = -1;
    if (!is_ours || fault(OP_UNLINK) != FAIL) {
        result = syscall(SYS_unlinkat, at, name, flags);
        if (is_ours && result == 0 && !(flags & AT_REMOVEDIR))
            emit_names(UNLINK, path, NULL);
    }
    leave();
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
