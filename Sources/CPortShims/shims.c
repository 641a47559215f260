/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors */
#define _GNU_SOURCE
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

/* include/net/scm.h of the kernel: the most descriptors in one message. */
#define MAX_DESCRIPTORS 253

const uint32_t SHIM_EPOLLIN = EPOLLIN, SHIM_EPOLLOUT = EPOLLOUT, SHIM_EPOLLHUP = EPOLLHUP, SHIM_EPOLLERR = EPOLLERR,
               SHIM_EPOLLRDHUP = EPOLLRDHUP,
               SHIM_EPOLLET = EPOLLET;
const int SHIM_EPOLL_CTL_ADD = EPOLL_CTL_ADD, SHIM_EPOLL_CTL_MOD = EPOLL_CTL_MOD, SHIM_EPOLL_CTL_DEL = EPOLL_CTL_DEL;
const int SHIM_MSG_TRUNC = MSG_TRUNC, SHIM_MSG_CTRUNC = MSG_CTRUNC, SHIM_SCM_MAX_FD = MAX_DESCRIPTORS;

const int SHIM_SOCK_SEQPACKET = SOCK_SEQPACKET, SHIM_SOCK_STREAM = SOCK_STREAM, SHIM_SOCK_CLOEXEC = SOCK_CLOEXEC,
          SHIM_SOCK_NONBLOCK = SOCK_NONBLOCK;

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

int shim_ppoll(int descriptor, short events, short *returned, int64_t nanoseconds) {
    struct timespec timeout = TIMESPEC(nanoseconds);
    struct pollfd entry = {.fd = descriptor, .events = events};
    int count = ppoll(&entry, 1, nanoseconds < 0 ? NULL : &timeout, NULL);
    *returned = entry.revents;
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

int shim_dup_cloexec(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

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

long shim_send(int socket, const void *head, size_t headLength, const void *body, size_t bodyLength, const void *tail,
               size_t tailLength, const int *descriptors, int descriptorCount) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)];
    } control;
    struct iovec parts[3] = {{.iov_base = (void *)head, .iov_len = headLength}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};
    if (bodyLength > 0) {
        parts[message.msg_iovlen++] = (struct iovec){.iov_base = (void *)body, .iov_len = bodyLength};
    }
    if (tailLength > 0) {
        parts[message.msg_iovlen++] = (struct iovec){.iov_base = (void *)tail, .iov_len = tailLength};
    }
    if (descriptorCount > MAX_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    if (descriptorCount > 0) {
        size_t length = sizeof(int) * (size_t)descriptorCount;
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(length);
        memset(control.space, 0, message.msg_controllen);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(&control.header), descriptors, length);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

long shim_receive(int socket, void *head, size_t headCapacity, void *body, size_t bodyCapacity, int *descriptors,
                  int descriptorCapacity, int *descriptorCount, int *flags) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)];
    } control;
    struct iovec parts[2] = {{.iov_base = head, .iov_len = headCapacity}, {.iov_base = body, .iov_len = bodyCapacity}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int found = 0;
    if (count >= 0) {
        for (struct cmsghdr *entry = CMSG_FIRSTHDR(&message); entry != NULL; entry = CMSG_NXTHDR(&message, entry)) {
            if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
            size_t length = entry->cmsg_len - CMSG_LEN(0);
            for (size_t offset = 0; offset + sizeof(int) <= length && found < descriptorCapacity; offset += sizeof(int))
                memcpy(&descriptors[found++], CMSG_DATA(entry) + offset, sizeof(int));
        }
        *flags = message.msg_flags;
    }
    *descriptorCount = found;
    return count;
}

/* Credentials come with every packet, also with one without bytes, but not with the end of a connection. */
int shim_shut_down_and_peek(int socket) {
    char byte;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int on = 1, tries = 2;
    ssize_t count;
    shutdown(socket, SHUT_RDWR);
    setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    do {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_PEEK | MSG_CMSG_CLOEXEC);
        /* Linux reports a reset once, gVisor each time. */
    } while (count < 0 && errno == ECONNRESET && --tries > 0);
    if (count < 0) return errno != EAGAIN && errno != ENOTCONN;
    return count > 0 || message.msg_controllen > 0 || (message.msg_flags & MSG_CTRUNC) != 0;
}

int shim_set_send_timeout(int socket, long microseconds) {
    struct timeval time = {.tv_sec = microseconds / 1000000, .tv_usec = microseconds % 1000000};
    int flags = fcntl(socket, F_GETFL);
    if (flags == -1 || setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0) return -1;
    return fcntl(socket, F_SETFL, microseconds > 0 ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

int shim_is_shut_local_stream(int socket) {
    int domain = 0, type = 0;
    struct pollfd state = {.fd = socket, .events = POLLRDHUP};
    socklen_t length = sizeof(int);
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0) return -1;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) < 0) return -1;
    if (domain != AF_UNIX || type != SOCK_STREAM) return 0;
    /* A socket that is not connected also has POLLHUP, but not POLLRDHUP. */
    return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLRDHUP)) == (POLLHUP | POLLRDHUP);
}

long shim_peek(int socket, void *buffer, size_t capacity) {
    return recv(socket, buffer, capacity, MSG_PEEK | MSG_DONTWAIT);
}

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
/* F_SEAL_SEAL, so that no seal can be added or removed. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

int shim_allocate(int descriptor, size_t size) { return fallocate(descriptor, 0, 0, (off_t)size); }

#define MEMORY_CLOSE_ON_EXEC 1U   /* MFD_CLOEXEC */
#define MEMORY_ALLOW_SEALING 2U   /* MFD_ALLOW_SEALING */
#define MEMORY_NOEXEC_SEAL 8U     /* MFD_NOEXEC_SEAL, Linux 6.3 */

int shim_memory_file(_Bool notExecutable) {
    unsigned flags = MEMORY_CLOSE_ON_EXEC | MEMORY_ALLOW_SEALING | (notExecutable ? MEMORY_NOEXEC_SEAL : 0);
    return (int)syscall(SYS_memfd_create, "port-ring", flags);
}

int shim_seal(int descriptor) { return fcntl(descriptor, F_ADD_SEALS, SEALS); }

int shim_is_sealed(int descriptor, int *sealed) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    *sealed = seals != -1 && (seals & SEALS) == SEALS;
    return seals;
}

intptr_t shim_map_shared(int descriptor, size_t size, int writable) {
    return (intptr_t)mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0);
}

int shim_socket_path(int socket, char *path, int capacity, int *length) {
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    int result = getsockname(socket, (struct sockaddr *)&address, &size);
    *length = 0;
    if (result == 0 && address.sun_family == AF_UNIX && size > offsetof(struct sockaddr_un, sun_path)) {
        size_t room = size - offsetof(struct sockaddr_un, sun_path);
        size_t count = strnlen(address.sun_path, room < sizeof address.sun_path ? room : sizeof address.sun_path);
        if (count <= (size_t)capacity) {
            memcpy(path, address.sun_path, count);
            *length = (int)count;
        }
    }
    return result;
}

int shim_set_nonblocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags == -1 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

int shim_peer_credentials(int socket, int *process, unsigned *user, unsigned *group) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    int result = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
    *process = credentials.pid;
    *user = credentials.uid;
    *group = credentials.gid;
    return result;
}

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

int shim_peer_groups(int socket, unsigned *groups, int capacity, int *count) {
    socklen_t length = (socklen_t)capacity * sizeof *groups;
    int result = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length);
    *count = (int)(length / sizeof *groups);
    return result;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  /* Linux 6.5 */
#endif

int shim_peer_process(int socket) {
    int process = -1;
    socklen_t length = sizeof process;
    return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &length) < 0 ? -1 : process;
}

int shim_is_of_process_files(int process) {
    struct statfs system;
    if (fstatfs(process, &system) < 0) return -1;
    return system.f_type == 0x50494446; /* PID_FS_MAGIC of linux/magic.h, since Linux 6.9 */
}

int shim_accept(int socket) { return accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

int shim_futex_wait(const void *word, unsigned expected, int64_t limit) {
    struct timespec time = {.tv_sec = limit / 1000000000, .tv_nsec = limit % 1000000000};
    const struct timespec *end = limit == INT64_MAX ? NULL : &time;
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, end, NULL, FUTEX_BITSET_MATCH_ANY);
}

int shim_futex_wake(void *word) { return (int)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1); }

uintptr_t shim_this_thread(void) { return (uintptr_t)pthread_self(); }

int shim_start_thread(uintptr_t *thread, size_t stackSize, void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t started;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    if (stackSize > 0) error = pthread_attr_setstacksize(&attributes, stackSize);
    if (!error) error = pthread_create(&started, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    if (!error) *thread = (uintptr_t)started;
    return error;
}

int shim_join_thread(uintptr_t thread) { return pthread_join((pthread_t)thread, NULL); }

int shim_detach_thread(uintptr_t thread) { return pthread_detach((pthread_t)thread); }

int shim_thread_id(void) { return (int)syscall(SYS_gettid); }

int shim_allowed_processor_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}
int shim_name_thread(const char *name) { return pthread_setname_np(pthread_self(), name); }

static unsigned fork_count;

static void count_fork(void) { fork_count++; }

/* The C library calls count_fork in each new child, before fork returns there: no other thread exists then. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

unsigned shim_fork_count(void) { return fork_count; }

static _Thread_local void *thread_cache;

void *shim_thread_cache(void) { return thread_cache; }
void shim_set_thread_cache(void *cache) { thread_cache = cache; }

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IS_SANITIZED
#endif
#endif

_Bool shim_pools_memory(void) {
#ifdef IS_SANITIZED
    return 0;
#else
    return 1;
#endif
}

char **shim_environment(void) { return environ; }

const char *shim_variable(const char *name) { return secure_getenv(name); }

const int SHIM_O_PATH = O_PATH;

int shim_dup_cloexec_from(int descriptor, int lowest) {
    int made = fcntl(descriptor, F_DUPFD_CLOEXEC, lowest);
    /* The kernel's number for a limit (RLIMIT_NOFILE) that was lowered to `lowest` or less. */
    if (made < 0 && errno == EINVAL) errno = EMFILE;
    return made;
}

int shim_set_cloexec(int descriptor) { return fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

/* Linux 5.3, 5.1 and 5.4. The C library has names for them only since 2.36; the numbers are the same on every
 * machine. */
#define SYSTEM_CALL_PIDFD_OPEN 434
#define SYSTEM_CALL_PIDFD_SEND_SIGNAL 424
#define ID_IS_PIDFD 3

int shim_pidfd_open(int process) { return (int)syscall(SYSTEM_CALL_PIDFD_OPEN, process, 0); }

int shim_pidfd_send_signal(int process, int signal) {
    return (int)syscall(SYSTEM_CALL_PIDFD_SEND_SIGNAL, process, signal, NULL, 0);
}

int shim_wait_for_child(int descriptor, int process, _Bool keeps, _Bool blocks, int *ended, int *code, int *status) {
    siginfo_t information = {.si_pid = 0};
    int options = WEXITED | (blocks ? 0 : WNOHANG) | (keeps ? WNOWAIT : 0);
    idtype_t kind = descriptor < 0 ? P_PID : (idtype_t)ID_IS_PIDFD;
    int result = waitid(kind, (id_t)(descriptor < 0 ? process : descriptor), &information, options);
    *ended = information.si_pid;
    *code = information.si_code;
    *status = information.si_status;
    return result;
}

const int SHIM_CLD_EXITED = CLD_EXITED;

void shim_kernel_release(char *text, int capacity) {
    struct utsname system;
    snprintf(text, (size_t)capacity, "%s", uname(&system) == 0 ? system.release : "unknown");
}

void shim_library_version(char *text, int capacity) {
#ifdef __GLIBC__
    snprintf(text, (size_t)capacity, "glibc %s", gnu_get_libc_version());
#else
    snprintf(text, (size_t)capacity, "not glibc, so it does not say its version");
#endif
}

/* Linux 5.9. The C library has a name for it only since 2.34; the number is the same on every machine. */
#define SYSTEM_CALL_CLOSE_RANGE 436

int shim_close_no_range(void) { return (int)syscall(SYSTEM_CALL_CLOSE_RANGE, UINT_MAX, UINT_MAX, 0); }

int shim_try_process_wait(int process) {
    siginfo_t information;
    return waitid((idtype_t)3 /* P_PIDFD */, (id_t)process, &information, WEXITED | WNOHANG | WNOWAIT);
}

int shim_try_open_file_lock(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_GETLK, &lock);
}

void shim_handle_signal(int signal, void (*handler)(int signal, void *information, void *context)) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    action.sa_sigaction = (void (*)(int, siginfo_t *, void *))(void *)handler;
    sigaction(signal, &action, NULL);
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
