// Preloaded into the server: sees every change that it makes below one folder, fails some of them, and logs all of them.
//
//   TORTURE_ROOT    the folder, as an absolute path
//   TORTURE_LOG     where changes are appended, in the order in which they were made (disklog.py reads it); unset: no log
//   TORTURE_FAULTS  SEED:PER_MILLE:KINDS, where KINDS are letters: e (a write fails with EIO), n (with ENOSPC), s (a write is short),
//                   t (a write is short and the next one on that file fails with EIO), f (fsync fails with EIO), o (opening to write fails);
//                   d is the planted fault of this suite's own test: fsync does nothing, and the log says that it did
//   TORTURE_SWITCH  faults happen only while this file exists
//
// Writes to files that SQLite maps (its -shm file) are not seen; nothing of them has to outlive a power cut.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { OPENED = 1, WRITTEN, TRUNCATED, SYNC_BEGAN, SYNC_ENDED, RENAMED, UNLINKED, LINKED, FAILED };

struct record {
    uint32_t magic, kind;
    uint64_t time, handle, offset;
    uint32_t length, extra;
};

#define MAX_FILES 65536
#define MAGIC 0x45415253u
static uint32_t handles[MAX_FILES];
static char fails_next[MAX_FILES];
static uint32_t last_handle;
static uint64_t records, state;
static int log_file = -1, per_mille;
static char root[PATH_MAX], switch_path[PATH_MAX], kinds[16];
static size_t root_length;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void begin(void) {
    const char *value = getenv("TORTURE_ROOT");
    if (!value || strlen(value) >= sizeof root) return;
    strcpy(root, value);
    if ((value = getenv("TORTURE_FAULTS"))) {
        unsigned long long seed = 0;
        if (sscanf(value, "%llu:%d:%15s", &seed, &per_mille, kinds) != 3) abort();
        state = seed * 2654435769u + 88172645463325252ull;
    }
    if ((value = getenv("TORTURE_SWITCH")) && strlen(value) < sizeof switch_path) strcpy(switch_path, value);
    if ((value = getenv("TORTURE_LOG"))) {
        REAL(open);
        log_file = real(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (log_file < 0) abort();
        struct stat there;
        // A second start goes on in the same log, whose records have numbers of their own each time.
        if (fstat(log_file, &there) != 0) abort();
    }
    root_length = strlen(root);
}

static int is_mine(const char *path) { return root_length && !strncmp(path, root, root_length) && path[root_length] == '/'; }

// The absolute path; 0 when it is not below the folder.
static int whole(int folder, const char *path, char *out) {
    pthread_once(&once, begin);
    if (path[0] == '/') {
        if (strlen(path) >= PATH_MAX) return 0;
        strcpy(out, path);
        return is_mine(out);
    }
    char link[64], base[PATH_MAX];
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t count = readlink(link, base, sizeof base - 1);
        if (count < 0) return 0;
        base[count] = 0;
    }
    return snprintf(out, PATH_MAX, "%s/%s", base, path) < PATH_MAX && is_mine(out);
}

static uint32_t handle_of(int file) { return file >= 0 && file < MAX_FILES ? handles[file] : 0; }

static uint64_t now(void) {
    struct timespec time;
    // The vDSO's: a preloaded clock fakes the libc call only for the wall clock.
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// With the mutex held. Returns the record's number.
static uint64_t note(enum kind kind, uint64_t handle, uint64_t offset, uint32_t extra, const void *data, size_t length) {
    uint64_t number = records++;
    if (log_file < 0) return number;
    struct record record = {MAGIC, kind, now(), handle, offset, (uint32_t)length, extra};
    struct iovec parts[2] = {{&record, sizeof record}, {(void *)data, length}};
    REAL(writev);
    // A log that lacks a piece proves nothing.
    if (real(log_file, parts, length ? 2 : 1) != (ssize_t)(sizeof record + length)) abort();
    return number;
}

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// Which of these faults happens now; 0: none. With the mutex held.
static char fault(const char *possible) {
    if (!per_mille || (switch_path[0] && access(switch_path, F_OK) != 0)) return 0;
    if (draw() % 1000 >= (uint64_t)per_mille) return 0;
    size_t count = strlen(kinds);
    char kind = kinds[draw() % count];
    return strchr(possible, kind) ? kind : 0;
}

static int opened(int file, const char *path, int flags) {
    if (file < 0 || file >= MAX_FILES || (flags & O_PATH)) return file;
    handles[file] = ++last_handle;
    fails_next[file] = 0;
    note(OPENED, last_handle, 0, (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY, path, strlen(path));
    return file;
}

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    REAL(openat);
    char full[PATH_MAX];
    if (!whole(folder, path, full)) return real(folder, path, flags, mode);
    pthread_mutex_lock(&mutex);
    int file = -1;
    if ((flags & O_ACCMODE) != O_RDONLY && fault("o")) {
        note(FAILED, 0, 0, 'o', full, strlen(full));
        errno = draw() % 2 ? ENOSPC : EIO;
    } else {
        file = opened(real(folder, path, flags, mode), full, flags);
    }
    int code = errno;
    pthread_mutex_unlock(&mutex);
    errno = code;
    return file;
}

#define MODE(flags)                                  \
    mode_t mode = 0;                                 \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {         \
        va_list list;                                \
        va_start(list, flags);                       \
        mode = va_arg(list, mode_t);                 \
        va_end(list);                                \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return open_any(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return open_any(folder, path, flags, mode);
}
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int file) {
    REAL(close);
    if (file >= 0 && file < MAX_FILES) handles[file] = 0;
    return real(file);
}

// One write at an offset, or where the file stands (offset < 0).
static ssize_t write_any(int file, const void *data, size_t count, off_t offset) {
    REAL(write);
    __typeof__(&pwrite) real_at = (__typeof__(&pwrite))dlsym(RTLD_NEXT, "pwrite");
    uint32_t handle = handle_of(file);
    if (!handle) return offset < 0 ? real(file, data, count) : real_at(file, data, count, offset);
    pthread_mutex_lock(&mutex);
    char kind = fails_next[file] ? 'e' : fault("enst");
    fails_next[file] = 0;
    ssize_t done = -1;
    int code = 0;
    if (kind == 'e' || kind == 'n') {
        note(FAILED, handle, 0, (uint32_t)kind, "", 0);
        code = kind == 'e' ? EIO : ENOSPC;
    } else {
        if (kind && count > 1) count = 1 + draw() % (count - 1);
        fails_next[file] = kind == 't';
        off_t at = offset;
        if (at < 0) {
            struct stat there;
            at = fcntl(file, F_GETFL) & O_APPEND && fstat(file, &there) == 0 ? there.st_size : lseek(file, 0, SEEK_CUR);
        }
        done = offset < 0 ? real(file, data, count) : real_at(file, data, count, offset);
        code = errno;
        if (done > 0) note(WRITTEN, handle, (uint64_t)at, 0, data, (size_t)done);
    }
    pthread_mutex_unlock(&mutex);
    if (done < 0) errno = code;
    return done;
}

ssize_t write(int file, const void *data, size_t count) { return write_any(file, data, count, -1); }
ssize_t pwrite(int file, const void *data, size_t count, off_t offset) { return write_any(file, data, count, offset); }
ssize_t pwrite64(int file, const void *data, size_t count, off64_t offset) { return write_any(file, data, count, offset); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(writev);
    if (!handle_of(file)) return real(file, parts, count);
    ssize_t sum = 0;
    for (int index = 0; index < count; index++) {
        ssize_t done = write_any(file, parts[index].iov_base, parts[index].iov_len, -1);
        if (done < 0) return sum ? sum : done;
        sum += done;
        if ((size_t)done < parts[index].iov_len) break;
    }
    return sum;
}

static int truncate_any(int file, off_t size) {
    REAL(ftruncate);
    uint32_t handle = handle_of(file);
    if (!handle) return real(file, size);
    pthread_mutex_lock(&mutex);
    int result = real(file, size);
    int code = errno;
    if (result == 0) note(TRUNCATED, handle, (uint64_t)size, 0, "", 0);
    pthread_mutex_unlock(&mutex);
    errno = code;
    return result;
}
int ftruncate(int file, off_t size) { return truncate_any(file, size); }
int ftruncate64(int file, off64_t size) { return truncate_any(file, size); }

static int sync_any(int file, int (*real)(int)) {
    uint32_t handle = handle_of(file);
    if (!handle) return real(file);
    pthread_mutex_lock(&mutex);
    char kind = fault("fd");
    uint64_t began = note(kind == 'f' ? FAILED : SYNC_BEGAN, handle, 0, (uint32_t)kind, "", 0);
    pthread_mutex_unlock(&mutex);
    if (kind == 'f') {
        errno = EIO;
        return -1;
    }
    // The planted fault: the caller believes it, the log does not.
    if (kind == 'd') return 0;
    int result = real(file);
    int code = errno;
    pthread_mutex_lock(&mutex);
    if (result == 0) note(SYNC_ENDED, handle, began, 0, "", 0);
    pthread_mutex_unlock(&mutex);
    errno = code;
    return result;
}
int fsync(int file) {
    REAL(fsync);
    return sync_any(file, real);
}
int fdatasync(int file) {
    REAL(fdatasync);
    return sync_any(file, real);
}

// Two paths, with a zero byte between them.
static void note_pair(enum kind kind, const char *from, const char *to) {
    char both[2 * PATH_MAX];
    size_t first = strlen(from) + 1, second = strlen(to);
    memcpy(both, from, first);
    memcpy(both + first, to, second);
    note(kind, 0, 0, 0, both, first + second);
}

#define NAMED(call, kind, from_folder, from, to_folder, to)                          \
    char first[PATH_MAX], second[PATH_MAX];                                          \
    int is_first = whole(from_folder, from, first), is_second = whole(to_folder, to, second); \
    if (!is_first && !is_second) return call;                                        \
    pthread_mutex_lock(&mutex);                                                      \
    int result = call, code = errno;                                                 \
    if (result == 0) note_pair(kind, first, second);                                 \
    pthread_mutex_unlock(&mutex);                                                    \
    errno = code;                                                                    \
    return result;

int rename(const char *from, const char *to) {
    REAL(rename);
    NAMED(real(from, to), RENAMED, AT_FDCWD, from, AT_FDCWD, to)
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(renameat);
    NAMED(real(from_folder, from, to_folder, to), RENAMED, from_folder, from, to_folder, to)
}
int link(const char *from, const char *to) {
    REAL(link);
    NAMED(real(from, to), LINKED, AT_FDCWD, from, AT_FDCWD, to)
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    REAL(linkat);
    NAMED(real(from_folder, from, to_folder, to, flags), LINKED, from_folder, from, to_folder, to)
}

static int unlink_any(int folder, const char *path, int flags) {
    REAL(unlinkat);
    char full[PATH_MAX];
    if (!whole(folder, path, full)) return real(folder, path, flags);
    pthread_mutex_lock(&mutex);
    int result = real(folder, path, flags), code = errno;
    if (result == 0 && !(flags & AT_REMOVEDIR)) note(UNLINKED, 0, 0, 0, full, strlen(full));
    pthread_mutex_unlock(&mutex);
    errno = code;
    return result;
}
int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return unlink_any(folder, path, flags); }
