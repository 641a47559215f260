/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Makes the bootstrap descriptor of a worker process (Docs/WireFormat.md) close-on-exec when the program starts, before
 * anything in it can start another program: that program would hold the launcher's connection open, and is no worker.
 * One that is standard input is moved first, and /dev/null takes its place: standard input is never closed.
 */
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int moved_input = 0;

int shim_bootstrap_input(void) { return moved_input; }

static void move_standard_input(void) {
    int moved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int null = moved == -1 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    moved_input = null != -1 && dup2(null, STDIN_FILENO) != -1 ? moved : -errno;
    if (null != -1) close(null);
    if (moved_input < 0 && moved != -1) close(moved);
}

__attribute__((constructor)) static void keep_bootstrap_descriptor(void) {
    const char *value = shim_variable("SWIFT_PORT_BOOTSTRAP");
    if (!value) return;
    int error = errno;
    char *end;
    long descriptor = strtol(value, &end, 10);
    if (*end == ':' && (descriptor == STDIN_FILENO || descriptor > STDERR_FILENO) && descriptor <= INT_MAX) {
        unsigned long long inode = strtoull(end + 1, NULL, 10);
        struct stat status;
        int flags = fcntl((int)descriptor, F_GETFD);
        if (flags != -1 && fstat((int)descriptor, &status) == 0 && S_ISSOCK(status.st_mode)
            && status.st_ino == inode) {
            if (descriptor == STDIN_FILENO) move_standard_input();
            else fcntl((int)descriptor, F_SETFD, flags | FD_CLOEXEC);
        }
    }
    errno = error;
}
