/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * What the C library's Swift module lacks: functions that are variadic or missing from its module map, macros,
 * structures that need _GNU_SOURCE, and declarations whose types differ between C libraries. There is hardly any logic
 * here: most functions are one call or one macro; those that are more say so here or in their file. A function that
 * came to glibc after 2.26, or is not in musl, is called by its number.
 *
 * This header includes no C library headers other than <stddef.h> and <stdint.h>: Swift would consider their types to
 * be defined here. So times are passed in nanoseconds (negative: no limit), and ids as int and unsigned.
 */
#ifndef CPORTSHIMS_H
#define CPORTSHIMS_H

#include <stddef.h>
#include <stdint.h>

/* epoll: struct epoll_event is packed, so its fields are passed one by one. */
int shim_epoll_create(void);
int shim_epoll_ctl(int epoll, int operation, int descriptor, uint32_t events, uint64_t data);
typedef struct {
    uint32_t events;
    uint64_t data;
} shim_epoll_record;
int shim_epoll_wait(int epoll, shim_epoll_record *records, int capacity, int64_t nanoseconds);
/* The same on every kernel, with a limit in whole milliseconds. */
int shim_epoll_wait_milliseconds(int epoll, shim_epoll_record *records, int capacity, int milliseconds);
extern const uint32_t SHIM_EPOLLIN, SHIM_EPOLLOUT, SHIM_EPOLLHUP, SHIM_EPOLLERR, SHIM_EPOLLRDHUP, SHIM_EPOLLET;
extern const int SHIM_EPOLL_CTL_ADD, SHIM_EPOLL_CTL_MOD, SHIM_EPOLL_CTL_DEL;

int shim_eventfd(void);

/* read(2) of at most 512 bytes, which are discarded. */
long shim_discard(int descriptor, size_t capacity);
int shim_pipe(int descriptors[2]);
/* Leaves a pipe one page. */
int shim_shrink_pipe(int end);
/* Does nothing; fails with ESPIPE for a pipe, a socket or a device. It asks no file system, and takes no lock of a pipe. */
int shim_sync_nothing(int descriptor);
/* Which file of a pipe it is, as the kernel knows it without asking a file system: 1; 0 where it is no pipe. */
/* Whether a descriptor is of the file with that number on that device. */
int shim_statx_is(int descriptor, uint64_t device, uint64_t inode);
int shim_statx_pipe(int descriptor, uint64_t *device, uint64_t *inode);
/* 1 when both are the same open file, else 0. */
int shim_query_duplicate(int descriptor, int other);
/* 0 when both are the same open file, else positive. Linux 3.5, unless left out. */
int shim_compare_files(int descriptor, int other);
/* O_RDONLY, O_WRONLY or O_RDWR; O_ACCMODE for a mere reference. */
int shim_access_mode(int descriptor);
int shim_ppoll(int descriptor, short events, short *returned, int64_t nanoseconds);
/* Sets what was seen on the second descriptor. */
int shim_ppoll_two(int first, short events, int second, short others, short *returned, int64_t nanoseconds);

/* inotify: the descriptor is non-blocking. */
int shim_inotify_create(void);
int shim_inotify_add(int inotify, const char *path, uint32_t events);
int shim_inotify_remove(int inotify, int watch);
extern const uint32_t SHIM_IN_CREATE, SHIM_IN_DELETE, SHIM_IN_MODIFY, SHIM_IN_CLOSE_WRITE, SHIM_IN_MOVED_TO,
    SHIM_IN_MOVED_FROM, SHIM_IN_MOVE_SELF, SHIM_IN_DELETE_SELF, SHIM_IN_ATTRIB, SHIM_IN_Q_OVERFLOW,
    SHIM_IN_ONLYDIR;

int shim_openat(int directory, const char *path, int flags, unsigned mode);
/* fchown(2) of the group only, also with a descriptor of O_PATH. */
int shim_change_group(int descriptor, unsigned group);
/* RLIMIT_NOFILE, the soft limit; INT_MAX when it is larger, or there is none. */
int shim_descriptor_limit(void);
/* The largest file that this process may make. */
int64_t shim_file_size_limit(void);
/* The soft and the hard limit, unchanged; UINT64_MAX for none. */
void shim_descriptor_limits(uint64_t *soft, uint64_t *hard);
/* Open-file-description locks (fcntl(2)): dropped by the kernel when the last descriptor of the open file is closed. */
int shim_lock_exclusive(int descriptor);
int shim_unlock(int descriptor);
int shim_lock_is_held(int descriptor, int *held);
int shim_rename_noreplace(int directory, const char *from, const char *to);

/* The types of socket(2), which are an enumeration in some C libraries and macros in others. */
extern const int SHIM_SOCK_SEQPACKET, SHIM_SOCK_STREAM, SHIM_SOCK_CLOEXEC, SHIM_SOCK_NONBLOCK;
/* sendmsg and recvmsg with one SCM_RIGHTS control message. */
long shim_send(int socket, const void *head, size_t headLength, const void *body, size_t bodyLength, const void *tail,
               size_t tailLength, const int *descriptors, int descriptorCount);
long shim_receive(int socket, void *head, size_t headCapacity, void *body, size_t bodyCapacity, int *descriptors,
                  int descriptorCapacity, int *descriptorCount, int *flags);

/* Sets how long sending and connecting wait on a socket; with zero they do not wait at all. */
int shim_set_send_timeout(int socket, long microseconds);
/* Ends a connection, and checks for unread packets: 0 when there is none, 1 when there is one or that is unknown. */
int shim_shut_down_and_peek(int socket);
/* Whether it is a stream socket of this machine that is shut down in both directions; -1 where it is no socket. */
int shim_is_shut_local_stream(int socket);
/* The first bytes of the next packet, which stays in the queue. */
long shim_peek(int socket, void *buffer, size_t capacity);
extern const int SHIM_MSG_TRUNC, SHIM_MSG_CTRUNC, SHIM_SCM_MAX_FD;

/* Shared memory: a file without a name, which the kernel shows as `name`. Once it is sealed, its size and its seals
 * cannot change, and no new writable mapping and no hole can be made; once its contents are sealed, they cannot change
 * either, which fails while there is a writable mapping. */
int shim_memory_file(const char *name, _Bool notExecutable);
int shim_seal(int descriptor, _Bool contents);
int shim_is_sealed(int descriptor, _Bool contents, int *sealed);
int shim_allocate(int descriptor, size_t offset, size_t size);
/* Return the address, or -1. */
intptr_t shim_map_shared(int descriptor, size_t size, int writable);
/* For reading. Before Linux 6.7 no shared mapping of a file whose contents are sealed is possible. */
intptr_t shim_map_sealed(int descriptor, size_t size);

/* Writes the path of a socket's own address to `path`, and its length; zero for a socket without a path. */
int shim_socket_path(int socket, char *path, int capacity, int *length);
int shim_is_nonblocking(int descriptor);
/* Gives the number of a descriptor to the open file of another one. */
int shim_replace_cloexec(int descriptor, int other);
int shim_set_nonblocking(int descriptor);
/* Whether the kernel says with each packet which process has sent it. */
int shim_pass_credentials(int socket, int on);
/* Sends a packet with this process's credentials, which the kernel checks. */
long shim_send_credentials(int socket, const void *head, size_t length);
/* The credentials of the sender of the first packet, which stays; 0 when it came without them, or at the end. */
int shim_peek_credentials(int socket, int *process, unsigned *user, unsigned *group);
int shim_peer_credentials(int socket, int *process, unsigned *user, unsigned *group);
/* The peer's supplementary groups; -1 and ERANGE when there are more than `capacity`: `count` is their number. */
int shim_peer_groups(int socket, unsigned *groups, int capacity, int *count);
/* A descriptor of the peer's process, close-on-exec; -1 and ENOPROTOOPT before Linux 6.5. */
int shim_peer_process(int socket);
/* The peer's security label; -1 and ERANGE when it has more than `capacity` bytes: `length` is their number. */
int shim_peer_label(int socket, char *label, int capacity, int *length);
/* How the process of a descriptor has ended, as wait(2) reports it; -1 and ENODATA before it was reaped, other errors
 * before Linux 6.15. */
int shim_process_end(int process, int *status);
/* Whether a process descriptor has an inode of its own. */
int shim_is_of_process_files(int process);
int shim_accept(int socket);
/* futex(2). The limit is a moment of CLOCK_MONOTONIC in nanoseconds, not negative; INT64_MAX: no limit. */
int shim_futex_wait(const void *word, unsigned expected, int64_t limit);
int shim_futex_wake(void *word);
int shim_thread_id(void);
/* A thread as one number, whatever pthread_t is. The functions that start, join and detach return an error number; a
 * stack size of zero is the system's default. */
uintptr_t shim_this_thread(void);
int shim_start_thread(uintptr_t *thread, size_t stackSize, void *(*body)(void *), void *argument);
int shim_join_thread(uintptr_t thread);
int shim_detach_thread(uintptr_t thread);
/* How many forks there were between the start of the program and this process. */
static inline unsigned shim_fork_count(void) {
    extern unsigned shim_forks;
    return shim_forks;
}
/* The calling thread's pointer, faster than pthread_getspecific: it is not released when the thread ends. */
static inline void *shim_thread_cache(void) {
    extern _Thread_local void *shim_thread_pointer;
    return shim_thread_pointer;
}
static inline void shim_set_thread_cache(void *cache) {
    extern _Thread_local void *shim_thread_pointer;
    shim_thread_pointer = cache;
}
/* The calling thread holds one more lock under which no callout may run; one fewer: returns whether it was the last one,
 * and callouts wait. */
static inline void shim_hold_callouts(void) {
    extern _Thread_local unsigned shim_held_locks;
    shim_held_locks++;
}
static inline _Bool shim_release_callouts(void) {
    extern _Thread_local unsigned shim_held_locks;
    extern _Thread_local _Bool shim_callouts_wait;
    return --shim_held_locks == 0 && shim_callouts_wait;
}
/* Whether the calling thread holds such a lock. */
static inline _Bool shim_holds_callouts(void) {
    extern _Thread_local unsigned shim_held_locks;
    return shim_held_locks != 0;
}
static inline void shim_set_callouts_wait(_Bool wait) {
    extern _Thread_local _Bool shim_callouts_wait;
    shim_callouts_wait = wait;
}
/* Whether the build is without the thread sanitizer and the address sanitizer. */
_Bool shim_pools_memory(void);
int shim_allowed_processor_count(void);
/* The processor on which the calling thread runs; -1 where that takes a system call. */
int shim_processor(void);
/* Prefetches two lines of memory for writing. On x86-64 the compiler's builtin prefetches them for reading, unless it
 * may assume that the processor has the instruction; all current processors have it, or ignore it. */
static inline void shim_prefetch(const void *place) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)place));
    __asm__ volatile("prefetchw %0" : : "m"(((const char *)place)[64]));
#else
    __builtin_prefetch(place, 1);
    __builtin_prefetch((const char *)place + 64, 1);
#endif
}
/* Prefetches a line of memory for reading. */
static inline void shim_prefetch_to_read(const void *place) {
    __builtin_prefetch(place, 0);
}
/* Copies to memory that is read on another processor, and leaves nothing of it in the caches of this one. */
void shim_copy_non_temporally(void *target, const void *source, size_t count);
/* Copies from memory that was written on another processor, and prefetches ahead of the copy. */
void shim_copy_prefetching(void *target, const void *source, size_t count);
static inline void shim_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Starts a program in a child process; returns the child's id. The two arrays end with a null pointer. The directory
 * may be null: then it is this process's. The descriptors become 0, 1, 2 and so on; a negative one leaves this
 * process's own of that number. None of the others is below the count. */
int shim_spawn(const char *path, char *const *arguments, char *const *environment, const char *directory,
               const int *descriptors, int descriptorCount);
char **shim_environment(void);

/* A variable of the environment; NULL when it is not set, or the program has privileges that its starter does not have.
 * */
const char *shim_variable(const char *name);
/* Where the bootstrap socket is that was the program's standard input; 0 when that was none, -errno when it could not be
 * moved. */
int shim_bootstrap_input(void);
extern const int SHIM_O_PATH;
/* A number that is not lower than `lowest`. */
int shim_dup_cloexec(int descriptor, int lowest);
int shim_set_cloexec(int descriptor);
int shim_pidfd_open(int process);
int shim_pidfd_send_signal(int process, int signal);
/* waitid(2) by a process descriptor, or by the number where that is negative. `ended` stays zero while the process
 * runs. With `keeps` the process can be waited for again. */
int shim_wait_for_child(int descriptor, int process, _Bool keeps, _Bool blocks, int *ended, int *code, int *status);
extern const int SHIM_CLD_EXITED;

/* The main dispatch queue: an eventfd that is readable while blocks wait, and the function that runs them. */
int shim_main_queue_descriptor(void);
void shim_main_queue_serve(void);
/* From now on each of ten signals that would end the process writes a byte to the first pipe, for the next function. A
 * thread that faults waits for that function, at most ten seconds; the second pipe ends the wait. */
void shim_report_ending_signals(const int pipes[4]);
void shim_end_by_signal(int byte);

/* The release from uname(2), and the name and version of the C library, as NUL-terminated text. */
void shim_kernel_release(char *text, int capacity);
void shim_library_version(char *text, int capacity);
/* close_range(2) of an empty range: only tests whether the system makes the call. */
int shim_close_no_range(void);
/* From now on the signal calls the handler, with its siginfo_t and context; interrupted calls are restarted. */
void shim_handle_signal(int signal, void (*handler)(int signal, void *information, void *context));

/* The size of a terminal in characters; -1, and no size, where there is none. */
int shim_terminal_size(int descriptor, int *columns, int *rows);
/* A pseudo-terminal of that size, for tests: its two ends, close-on-exec. */
int shim_open_terminal(int columns, int rows, int *master, int *slave);
/* Returns the error number; the name has at most 15 bytes. */
int shim_name_thread(const char *name);

#endif
