/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors
 *
 * Has the kernel refuse system calls to this process, by a filter (seccomp(2)), as containers, older kernels and sandboxes do. */
#ifndef CREFUSALS_H
#define CREFUSALS_H

/* Refuses from now on, to every thread and to whatever they start, what the words say. A word is the name of a call, of an
 * argument (`ofd-locks`), or of a list (`kernel-5.4`); an error number may follow it (`eventfd2=EPERM`), and stands in place
 * of `error` and of the word's own. `error` may be NULL. Gives NULL, or what is wrong. */
const char *refuse_calls(const char *const *words, int count, const char *error);

/* The words that there are, each with what it refuses, as lines of a help text. */
const char *refuse_help(void);

#endif
