// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#define _GNU_SOURCE
#include "wire.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/// What this process holds, to remove it at its end.
static char name_path[PATH_LIMIT], socket_path[PATH_LIMIT], lock_path[PATH_LIMIT];

static void join(char *out, const char *format, const char *first, const char *second) {
    if (snprintf(out, PATH_LIMIT, format, first, second) >= PATH_LIMIT) fail("a path that is too long");
}

/// The file name of a name. Long names, in base64url, are left to others.
static void file_name(char *out, const char *name) {
    size_t at = 0;
    for (const char *next = name; *next; next++) {
        unsigned char byte = (unsigned char)*next;
        int plain = (byte < 128 && isalnum(byte)) || byte == '_' || byte == '-' || (byte == '.' && next != name);
        at += (size_t)sprintf(out + at, plain ? "%c" : "%%%02X", byte);
        if (at > 200) fail("the name is too long for this program");
    }
}

static void socket_address(struct sockaddr_un *out, const char *path) {
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof out->sun_path) fail("the path is too long for this program: %s", path);
    strcpy(out->sun_path, path);
}

static int packet_socket(void) {
    int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (made < 0) fail("socket: %s", strerror(errno));
    return made;
}

int connect_to(const char *path) {
    struct sockaddr_un address;
    struct ucred owner;
    socklen_t size = sizeof owner;
    int connection = packet_socket();
    socket_address(&address, path);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) < 0) {
        close(connection);
        return -1;
    }
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &owner, &size) < 0 || owner.uid != geteuid())
        fail("the listener is another user's");
    return connection;
}

int look_up(const char *directory, const char *name) {
    char file[1024], path[PATH_LIMIT], within[PATH_LIMIT], contents[16385], address[PATH_LIMIT];
    file_name(file, name);
    join(within, "%s/%s", directory, "names");
    join(path, "%s/%s", within, file);
    int opened = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) return -1;
    ssize_t size = read(opened, contents, sizeof contents - 1);
    close(opened);
    contents[size > 0 ? size : 0] = 0;
    int length = 0, start = 0;
    if (sscanf(contents, "swift-port-name 1\nowner %*d\nsince %*d\nsocket %d %n", &length, &start) < 1 || start == 0) return -1;
    if (length <= 0 || length >= PATH_LIMIT || strcmp(contents + start + length, "\nend\n") != 0) return -1;
    memcpy(address, contents + start, (size_t)length);
    address[length] = 0;
    return connect_to(address);
}

/// Opens a file and locks it; -1 when another process holds the lock.
static int locked_file(const char *path) {
    for (;;) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct stat held, there;
        int opened = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (opened < 0) fail("%s: %s", path, strerror(errno));
        if (fcntl(opened, F_OFD_SETLK, &whole) < 0) {
            close(opened);
            return -1;
        }
        // The file may have been removed between opening and locking it.
        if (fstat(opened, &held) == 0 && stat(path, &there) == 0 && held.st_ino == there.st_ino) return opened;
        close(opened);
    }
}

int listen_in(const char *directory, char path[PATH_LIMIT]) {
    char id[33], sockets[PATH_LIMIT], unfinished[PATH_LIMIT];
    uint8_t random[16];
    struct sockaddr_un address;
    if (getrandom(random, sizeof random, 0) != sizeof random) fail("getrandom: %s", strerror(errno));
    for (int index = 0; index < 16; index++) sprintf(id + 2 * index, "%02x", random[index]);
    join(sockets, "%s/%s", directory, "sockets");
    join(lock_path, "%s/%s.lock", sockets, id);
    join(socket_path, "%s/%s.1", sockets, id);
    join(unfinished, "%s/%s.1.new", sockets, id);
    if (locked_file(lock_path) < 0) fail("another process has the id");
    int listener = packet_socket();
    socket_address(&address, unfinished);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0) fail("bind: %s", strerror(errno));
    if (listen(listener, 4096) < 0) fail("listen: %s", strerror(errno));
    if (renameat2(AT_FDCWD, unfinished, AT_FDCWD, socket_path, RENAME_NOREPLACE) < 0) fail("rename: %s", strerror(errno));
    strcpy(path, socket_path);
    return listener;
}

int hold_name(const char *directory, const char *name, const char *address) {
    char file[1024], names[PATH_LIMIT];
    struct timespec now;
    file_name(file, name);
    join(names, "%s/%s", directory, "names");
    join(name_path, "%s/%s", names, file);
    int held = locked_file(name_path);
    if (held < 0) {
        name_path[0] = 0;
        return 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (ftruncate(held, 0) < 0) fail("ftruncate: %s", strerror(errno));
    dprintf(held, "swift-port-name 1\nowner %d\nsince %lld\nsocket %zu %s\nend\n", (int)getpid(), (long long)now.tv_sec,
            strlen(address), address);
    return 1;
}

void let_go(void) {
    if (name_path[0]) unlink(name_path);
    if (socket_path[0]) unlink(socket_path);
    if (lock_path[0]) unlink(lock_path);
}

int accept_one(int listener) {
    await_readable(listener);
    int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (accepted < 0) fail("accept: %s", strerror(errno));
    return accepted;
}
