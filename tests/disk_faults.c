/* Calls that write below one directory fail as on a full or broken disk, by count. Loaded before libc.
 *
 * FAULTS_CONTROL names a file of five 64-bit numbers, shared by all processes: calls so far; the first and the
 * last call that fail; with which error; how many failed. FAULTS_BELOW names the directory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CALLS, FIRST, LAST, ERROR, FAILED, NUMBERS };
static volatile int64_t *control;
static char below[PATH_MAX];

static int ready(void) {
    if (control) return 1;
    const char *path = getenv("FAULTS_CONTROL"), *directory = getenv("FAULTS_BELOW");
    if (!path || !directory) return 0;
    int kept = errno, file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file >= 0) {
        void *mapped = mmap(0, NUMBERS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        syscall(SYS_close, file);
        snprintf(below, sizeof below, "%s/", directory);
        if (mapped != MAP_FAILED) control = mapped;
    }
    errno = kept;
    return control != 0;
}

static int fails(const char *path) {
    if (strncmp(path, below, strlen(below))) return 0;
    int64_t call = __atomic_add_fetch(&control[CALLS], 1, __ATOMIC_SEQ_CST);
    if (call < control[FIRST] || call > control[LAST]) return 0;
    __atomic_add_fetch(&control[FAILED], 1, __ATOMIC_SEQ_CST);
    errno = (int)control[ERROR];
    return 1;
}

static int fails_open(int file) {
    char name[64], path[PATH_MAX];
    if (!ready()) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    int kept = errno;
    ssize_t length = readlink(name, path, sizeof path - 1);
    errno = kept;
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(path);
}

static int fails_at(int directory, const char *path) {
    char name[64], whole[2 * PATH_MAX] = "";
    if (!ready() || !path) return 0;
    if (path[0] == '/') return fails(path);
    snprintf(name, sizeof name, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
    int kept = errno;
    ssize_t length = readlink(name, whole, PATH_MAX);
    errno = kept;
    if (length <= 0) return 0;
    snprintf(whole + length, sizeof whole - length, "/%s", path);
    return fails(whole);
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define ON_FILE(type, name, parameters, ...) \
    type name parameters { REAL(name); return fails_open(file) ? -1 : real(__VA_ARGS__); }
#define AT(name, parameters, directory, path, ...) \
    int name parameters { REAL(name); return fails_at(directory, path) ? -1 : real(__VA_ARGS__); }

ON_FILE(ssize_t, write, (int file, const void *data, size_t size), file, data, size)
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), file, data, size, at)
ON_FILE(ssize_t, writev, (int file, const struct iovec *parts, int count), file, parts, count)
ON_FILE(int, fsync, (int file), file)
ON_FILE(int, fdatasync, (int file), file)
ON_FILE(int, ftruncate, (int file, off_t size), file, size)
ON_FILE(int, ftruncate64, (int file, off64_t size), file, size)
ON_FILE(int, fallocate, (int file, int mode, off_t at, off_t size), file, mode, at, size)
ON_FILE(int, fallocate64, (int file, int mode, off64_t at, off64_t size), file, mode, at, size)
AT(mkdir, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
AT(mkdirat, (int directory, const char *path, mode_t mode), directory, path, directory, path, mode)
AT(rename, (const char *from, const char *to), AT_FDCWD, to, from, to)
AT(renameat, (int at, const char *from, int directory, const char *to), directory, to, at, from, directory, to)
AT(link, (const char *from, const char *to), AT_FDCWD, to, from, to)
AT(linkat, (int at, const char *from, int directory, const char *to, int flags), directory, to, at, from, directory,
   to, flags)

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
        return (flags & O_CREAT) && fails_at(AT_FDCWD, path) ? -1 : real(path, flags, mode); }
#define OPENS_AT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        REAL(name); va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more); \
        return (flags & O_CREAT) && fails_at(directory, path) ? -1 : real(directory, path, flags, mode); }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
