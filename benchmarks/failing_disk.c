/* A disk that fails, for benchmarks/reliability.py: preloaded, it counts the writing calls below a folder and fails
   those that it is told to. The process calls failing_disk(folder, first, code, kinds) and failing_disk_count(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { CREATE = 1, WRITE = 2, SYNC = 4, NAME = 8 };
static char folder[PATH_MAX];
static int first, code, kinds, count, failed;

void failing_disk(const char *place, int first_, int code_, int kinds_) {
    snprintf(folder, sizeof folder, "%s", place);
    first = first_, code = code_, kinds = kinds_, count = 0, failed = 0;
}
int failing_disk_count(void) { return count; }
int failing_disk_failed(void) { return failed; }

static int fails(const char *path, int kind) {
    if (!folder[0] || !(kinds & kind) || strncmp(path, folder, strlen(folder))) return 0;
    if (++count < first || !first) return 0;
    failed++;
    errno = code;
    return 1;
}
static int fd_fails(int fd, int kind) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int saved = errno;
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (size < 0) return 0;
    path[size] = 0;
    return fails(path, kind);
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; va_end(more); \
        if (flags & O_CREAT && access(path, F_OK) && fails(path, CREATE)) return -1; \
        return REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
int openat(int at, const char *path, int flags, ...) {
    va_list more; va_start(more, flags); mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; va_end(more);
    if (flags & O_CREAT && access(path, F_OK) && fails(path, CREATE)) return -1;
    return REAL(openat)(at, path, flags, mode);
}
ssize_t write(int fd, const void *from, size_t size) {
    return fd_fails(fd, WRITE) ? -1 : REAL(write)(fd, from, size);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    return fd_fails(fd, WRITE) ? -1 : REAL(pwrite)(fd, from, size, at);
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    return fd_fails(fd, WRITE) ? -1 : REAL(pwrite64)(fd, from, size, at);
}
int fsync(int fd) { return fd_fails(fd, SYNC) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fd_fails(fd, SYNC) ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { return fd_fails(fd, SYNC) ? -1 : REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fd_fails(fd, SYNC) ? -1 : REAL(ftruncate64)(fd, size); }
int mkdir(const char *path, mode_t mode) { return fails(path, CREATE) ? -1 : REAL(mkdir)(path, mode); }
int unlink(const char *path) { return fails(path, NAME) ? -1 : REAL(unlink)(path); }
int rename(const char *from, const char *to) { return fails(to, NAME) ? -1 : REAL(rename)(from, to); }
