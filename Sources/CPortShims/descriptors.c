/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

const uint32_t SHIM_EPOLLIN = EPOLLIN, SHIM_EPOLLOUT = EPOLLOUT, SHIM_EPOLLHUP = EPOLLHUP, SHIM_EPOLLERR = EPOLLERR,
               SHIM_EPOLLRDHUP = EPOLLRDHUP, SHIM_EPOLLET = EPOLLET;
const int SHIM_EPOLL_CTL_ADD = EPOLL_CTL_ADD, SHIM_EPOLL_CTL_MOD = EPOLL_CTL_MOD, SHIM_EPOLL_CTL_DEL = EPOLL_CTL_DEL;

int shim_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int shim_epoll_ctl(int epoll, int operation, int descriptor, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data = {.u64 = data}};
    return epoll_ctl(epoll, operation, descriptor, &event);
}

/* Linux 5.11; the same number on every machine. The C library has a name for it only since 2.35. */
#define SYSTEM_CALL_EPOLL_PWAIT2 441

#define TIMESPEC(nanoseconds) {.tv_sec = (nanoseconds) / 1000000000, .tv_nsec = (nanoseconds) % 1000000000}

#define EVENT_LIMIT 64

static int hand_over(const struct epoll_event *events, int count, shim_epoll_record *records) {
    for (int index = 0; index < count; index++) {
        records[index].events = events[index].events;
        records[index].data = events[index].data.u64;
    }
    return count;
}

int shim_epoll_wait(int epoll, shim_epoll_record *records, int capacity, int64_t nanoseconds) {
    struct timespec timeout = TIMESPEC(nanoseconds);
    struct epoll_event events[EVENT_LIMIT];
    int limit = capacity < EVENT_LIMIT ? capacity : EVENT_LIMIT;
    long count = syscall(SYSTEM_CALL_EPOLL_PWAIT2, epoll, events, limit, nanoseconds < 0 ? NULL : &timeout, NULL, 0);
    return hand_over(events, (int)count, records);
}

int shim_epoll_wait_milliseconds(int epoll, shim_epoll_record *records, int capacity, int milliseconds) {
    struct epoll_event events[EVENT_LIMIT];
    int limit = capacity < EVENT_LIMIT ? capacity : EVENT_LIMIT;
    return hand_over(events, epoll_pwait(epoll, events, limit, milliseconds, NULL), records);
}

long shim_discard(int descriptor, size_t capacity) {
    char bytes[512];
    return read(descriptor, bytes, capacity < sizeof bytes ? capacity : sizeof bytes);
}

int shim_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int shim_pipe(int descriptors[2]) { return pipe2(descriptors, O_CLOEXEC | O_NONBLOCK); }

int shim_shrink_pipe(int end) { return fcntl(end, F_SETPIPE_SZ, 4096); }

int shim_sync_nothing(int descriptor) { return sync_file_range(descriptor, 0, 0, 0); }

/* struct statx, which older C libraries lack. */
struct facts {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, user, group;
    uint16_t mode, spare;
    uint64_t inode, size, blocks, attributes_mask, times[8];
    uint32_t special_major, special_minor, device_major, device_minor;
    uint64_t others[14];
};
_Static_assert(sizeof(struct facts) == 256, "the size of struct statx");

/* Asks no file system, whose answer may not come: AT_EMPTY_PATH | AT_STATX_DONT_SYNC; STATX_TYPE | STATX_INO. */
static int find_facts(int descriptor, struct facts *facts) {
    return syscall(SYS_statx, descriptor, "", 0x1000 | 0x4000, 0x1 | 0x100, facts) < 0 ? -1 : 0;
}

int shim_statx_pipe(int descriptor, uint64_t *device, uint64_t *inode) {
    struct facts facts = {.mask = 0};
    if (find_facts(descriptor, &facts) < 0) return -1;
    *device = (uint64_t)facts.device_major << 32 | facts.device_minor;
    *inode = facts.inode;
    return (facts.mode & 0170000) == 0010000;
}

int shim_statx_is(int descriptor, uint64_t device, uint64_t inode) {
    struct facts facts = {.mask = 0};
    if (find_facts(descriptor, &facts) < 0) return -1;
    return makedev(facts.device_major, facts.device_minor) == device && facts.inode == inode;
}

int shim_query_duplicate(int descriptor, int other) {
    return fcntl(descriptor, 1024 + 3 /* F_DUPFD_QUERY, Linux 6.10 */, other);
}

int shim_compare_files(int descriptor, int other) {
    long thread = syscall(SYS_gettid);
    return (int)syscall(SYS_kcmp, thread, thread, 0 /* KCMP_FILE */, (long)descriptor, (long)other);
}

int shim_access_mode(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0) return -1;
    /* A mere reference (O_PATH) gives access to nothing. */
    return flags & O_PATH ? O_ACCMODE : flags & O_ACCMODE;
}

int shim_ppoll(int descriptor, short events, short *returned, int64_t nanoseconds) {
    struct timespec timeout = TIMESPEC(nanoseconds);
    struct pollfd entry = {.fd = descriptor, .events = events};
    int count = ppoll(&entry, 1, nanoseconds < 0 ? NULL : &timeout, NULL);
    *returned = entry.revents;
    return count;
}

int shim_ppoll_two(
    int first, short events, int second, short others, short *returned, int64_t nanoseconds) {
    struct timespec timeout = TIMESPEC(nanoseconds);
    struct pollfd entries[] = {{.fd = first, .events = events}, {.fd = second, .events = others}};
    int count = ppoll(entries, 2, nanoseconds < 0 ? NULL : &timeout, NULL);
    *returned = entries[1].revents;
    return count;
}

int shim_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
    return (int)limit.rlim_cur;
}

int64_t shim_file_size_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > INT64_MAX) return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

void shim_descriptor_limits(uint64_t *soft, uint64_t *hard) {
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    *soft = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    *hard = limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : limit.rlim_max;
}

int shim_inotify_create(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }

int shim_inotify_add(int inotify, const char *path, uint32_t events) { return inotify_add_watch(inotify, path, events); }

int shim_inotify_remove(int inotify, int watch) { return inotify_rm_watch(inotify, watch); }

const uint32_t SHIM_IN_CREATE = IN_CREATE, SHIM_IN_DELETE = IN_DELETE, SHIM_IN_MODIFY = IN_MODIFY,
               SHIM_IN_CLOSE_WRITE = IN_CLOSE_WRITE, SHIM_IN_MOVED_TO = IN_MOVED_TO,
               SHIM_IN_MOVED_FROM = IN_MOVED_FROM, SHIM_IN_MOVE_SELF = IN_MOVE_SELF,
               SHIM_IN_DELETE_SELF = IN_DELETE_SELF, SHIM_IN_ATTRIB = IN_ATTRIB, SHIM_IN_Q_OVERFLOW = IN_Q_OVERFLOW,
               SHIM_IN_ONLYDIR = IN_ONLYDIR;

int shim_openat(int directory, const char *path, int flags, unsigned mode) {
    return openat(directory, path, flags | O_CLOEXEC, mode);
}

int shim_change_group(int descriptor, unsigned group) { return fchownat(descriptor, "", -1, group, AT_EMPTY_PATH); }

int shim_dup_cloexec(int descriptor, int lowest) {
    int made = fcntl(descriptor, F_DUPFD_CLOEXEC, lowest);
    /* The kernel's number for a limit (RLIMIT_NOFILE) that was lowered to `lowest` or less. */
    if (made < 0 && errno == EINVAL) errno = EMFILE;
    return made;
}

int shim_replace_cloexec(int descriptor, int other) { return dup3(other, descriptor, O_CLOEXEC); }

int shim_set_cloexec(int descriptor) { return fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

int shim_is_nonblocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags < 0 ? flags : (flags & O_NONBLOCK) != 0;
}

int shim_set_nonblocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags == -1 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

int shim_lock_exclusive(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int shim_unlock(int descriptor) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int shim_lock_is_held(int descriptor, int *held) {
    /* A read lock conflicts only with a write lock, which a process that may only read the file cannot hold. */
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int result = fcntl(descriptor, F_OFD_GETLK, &lock);
    *held = lock.l_type != F_UNLCK;
    return result;
}

int shim_rename_noreplace(int directory, const char *from, const char *to) {
    return (int)syscall(SYS_renameat2, directory, from, directory, to, 1 /* RENAME_NOREPLACE, Linux 3.15 */);
}

const int SHIM_O_PATH = O_PATH;

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
/* F_SEAL_SEAL, so that no seal can be added or removed. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define CONTENT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

int shim_allocate(int descriptor, size_t offset, size_t size) { return fallocate(descriptor, 0, (off_t)offset, (off_t)size); }

#define MEMORY_CLOSE_ON_EXEC 1U   /* MFD_CLOEXEC */
#define MEMORY_ALLOW_SEALING 2U   /* MFD_ALLOW_SEALING */
#define MEMORY_NOEXEC_SEAL 8U     /* MFD_NOEXEC_SEAL, Linux 6.3 */

int shim_memory_file(const char *name, _Bool notExecutable) {
    unsigned flags = MEMORY_CLOSE_ON_EXEC | MEMORY_ALLOW_SEALING | (notExecutable ? MEMORY_NOEXEC_SEAL : 0);
    return (int)syscall(SYS_memfd_create, name, flags);
}

int shim_seal(int descriptor, _Bool contents) {
    return fcntl(descriptor, F_ADD_SEALS, contents ? CONTENT_SEALS : SEALS);
}

int shim_is_sealed(int descriptor, _Bool contents, int *sealed) {
    int seals = fcntl(descriptor, F_GET_SEALS), wanted = contents ? CONTENT_SEALS : SEALS;
    *sealed = seals != -1 && (seals & wanted) == wanted;
    return seals;
}

intptr_t shim_map_shared(int descriptor, size_t size, int writable) {
    return (intptr_t)mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0);
}

intptr_t shim_map_sealed(int descriptor, size_t size) {
    return (intptr_t)mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
}

int shim_terminal_size(int descriptor, int *columns, int *rows) {
    struct winsize size = {0};
    int result = ioctl(descriptor, TIOCGWINSZ, &size);
    *columns = size.ws_col;
    *rows = size.ws_row;
    return result;
}

int shim_open_terminal(int columns, int rows, int *master, int *slave) {
    struct winsize size = {.ws_col = columns, .ws_row = rows};
    char path[64];
    *slave = -1;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master == -1) return -1;
    if (grantpt(*master) == 0 && unlockpt(*master) == 0 && ptsname_r(*master, path, sizeof path) == 0
        && ioctl(*master, TIOCSWINSZ, &size) == 0) *slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave != -1) return 0;
    int error = errno;
    close(*master);
    errno = error;
    return -1;
}
