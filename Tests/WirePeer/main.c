// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
//   wire-peer client DIRECTORY NAME         talks to the port of a name, and says what holds
//   wire-peer serve DIRECTORY NAME          is the port of a name, until its input ends
//   wire-peer hostile DIRECTORY NAME ACT    breaks the format, or takes more than its share

#include "wire.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    alarm(300);  // whatever happens, it ends
    if (count == 4 && strcmp(arguments[1], "client") == 0) return run_client(arguments[2], arguments[3]);
    if (count == 4 && strcmp(arguments[1], "serve") == 0) return run_server(arguments[2], arguments[3]);
    if (count == 5 && strcmp(arguments[1], "hostile") == 0) return run_hostile(arguments[2], arguments[3], arguments[4]);
    fail("usage: wire-peer client|serve|hostile DIRECTORY NAME [ACT]");
}
