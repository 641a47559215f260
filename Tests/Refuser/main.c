/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Becomes a program to which the kernel refuses some system calls:
 *
 *   refuser [-e ERRNO] WORD... -- PROGRAM ARGUMENT...
 *
 * Without arguments it prints the words. */
#include "CRefusals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    const char *error = NULL;
    int first = 1, last;
    if (count > 2 && strcmp(arguments[1], "-e") == 0) {
        error = arguments[2];
        first = 3;
    }
    for (last = first; last < count && strcmp(arguments[last], "--") != 0; last++) {}
    if (last + 1 >= count) {
        fprintf(stderr, "refuser [-e ERRNO] WORD... -- PROGRAM ARGUMENT...\n%s", refuse_help());
        return 2;
    }
    const char *problem = refuse_calls((const char *const *)arguments + first, last - first, error);
    if (problem != NULL) {
        fprintf(stderr, "refuser: %s\n", problem);
        return 125;
    }
    execvp(arguments[last + 1], arguments + last + 1);
    perror(arguments[last + 1]);
    return 127;
}
