/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Makes the bootstrap descriptor of a worker process (Docs/WireFormat.md) close-on-exec when the program starts, before
 * anything in it can start another program: that program would hold the launcher's connection open, and is no worker.
 */
#include "CPortShims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

__attribute__((constructor)) static void keep_bootstrap_descriptor(void) {
    const char *value = shim_variable("SWIFT_PORT_BOOTSTRAP");
    if (!value) return;
    int error = errno;
    char *end;
    long descriptor = strtol(value, &end, 10);
    if (*end == ':' && descriptor > 2 && descriptor <= INT_MAX) {
        unsigned long long inode = strtoull(end + 1, NULL, 10);
        struct stat status;
        int flags = fcntl((int)descriptor, F_GETFD);
        if (flags != -1 && fstat((int)descriptor, &status) == 0 && S_ISSOCK(status.st_mode)
            && status.st_ino == inode) fcntl((int)descriptor, F_SETFD, flags | FD_CLOEXEC);
    }
    errno = error;
}
