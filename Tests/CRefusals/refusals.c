/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the swift-message-port authors */
#define _GNU_SOURCE
#include "CRefusals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "Say here what seccomp(2) calls this machine."
#endif

/* What one word refuses: a call, or all calls from a number on; always, or when an argument has a value or a bit. The error
 * number is the one that the word always means, or zero. */
enum condition { ALWAYS, FROM_HERE, EQUALS, HAS_BIT };
struct rule {
    const char *word;
    int call;
    enum condition condition;
    int argument;
    uint32_t value;
    int error;
};

/* Calls of Linux 5.1 and later have the same number on every machine. */
#define PEER_GROUPS 59 /* SO_PEERGROUPS, Linux 4.13 */
#define PEER_PIDFD 77  /* SO_PEERPIDFD, Linux 6.5 */
#define PIDFD_ID 3     /* P_PIDFD of waitid, Linux 5.4 */
#define ADD_SEALS 1033 /* F_ADD_SEALS of fcntl */

static const struct rule rules[] = {
    {"io_uring_setup", 425, ALWAYS, 0, 0, 0},
    {"io_uring_enter", 426, ALWAYS, 0, 0, 0},
    {"io_uring_register", 427, ALWAYS, 0, 0, 0},
    {"epoll_pwait2", 441, ALWAYS, 0, 0, 0},
    {"eventfd2", SYS_eventfd2, ALWAYS, 0, 0, 0},
    {"memfd_create", SYS_memfd_create, ALWAYS, 0, 0, 0},
    {"memfd-noexec", SYS_memfd_create, HAS_BIT, 1, 8, EINVAL},
    {"pidfd_open", 434, ALWAYS, 0, 0, 0},
    {"pidfd_send_signal", 424, ALWAYS, 0, 0, 0},
    {"pidfd_getfd", 438, ALWAYS, 0, 0, 0},
    {"waitid-pidfd", SYS_waitid, EQUALS, 0, PIDFD_ID, EINVAL},
    {"futex_waitv", 449, ALWAYS, 0, 0, 0},
    {"close_range", 436, ALWAYS, 0, 0, 0},
    {"renameat2", SYS_renameat2, ALWAYS, 0, 0, 0},
    {"inotify_init1", SYS_inotify_init1, ALWAYS, 0, 0, 0},
    {"inotify_add_watch", SYS_inotify_add_watch, ALWAYS, 0, 0, 0},
    {"shutdown", SYS_shutdown, ALWAYS, 0, 0, 0},
    {"socketpair", SYS_socketpair, ALWAYS, 0, 0, 0},
    {"fallocate", SYS_fallocate, ALWAYS, 0, 0, 0},
    {"membarrier", SYS_membarrier, ALWAYS, 0, 0, 0},
    {"memory-seals", SYS_fcntl, EQUALS, 1, ADD_SEALS, EINVAL},
    {"peer-pidfd", SYS_getsockopt, EQUALS, 2, PEER_PIDFD, ENOPROTOOPT},
    {"peer-groups", SYS_getsockopt, EQUALS, 2, PEER_GROUPS, ENOPROTOOPT},
    {"ofd-locks", SYS_fcntl, EQUALS, 1, F_OFD_GETLK, EINVAL},
    {"ofd-locks", SYS_fcntl, EQUALS, 1, F_OFD_SETLK, EINVAL},
    {"ofd-locks", SYS_fcntl, EQUALS, 1, F_OFD_SETLKW, EINVAL},
    /* What came after Linux 5.4, whose last call is clone3 (435), and after what gVisor has. */
    {"calls-after-5.4", 436, FROM_HERE, 0, 0, 0},
    {"calls-after-5.11", 442, FROM_HERE, 0, 0, 0},
};

static const struct {
    const char *word;
    const char *words[12];
    const char *help;
} lists[] = {
    {"container",
     {"io_uring_setup", "io_uring_enter", "io_uring_register"},
     "Docker's and containerd's own filter: EPERM; podman's: ENOSYS"},
    {"kernel-5.4",
     {"io_uring_setup", "io_uring_enter", "io_uring_register", "calls-after-5.4", "memfd-noexec", "peer-pidfd"},
     "Linux 5.4"},
    {"gvisor",
     {"io_uring_setup", "io_uring_enter", "io_uring_register", "calls-after-5.11", "memfd-noexec", "peer-pidfd",
      "peer-groups", "ofd-locks"},
     "gVisor"},
    {"no-pidfds", {"pidfd_open", "pidfd_send_signal", "waitid-pidfd", "peer-pidfd"}, "Linux before 5.1"},
};

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"ENOSYS", ENOSYS}, {"EPERM", EPERM},   {"EINVAL", EINVAL}, {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOPROTOOPT", ENOPROTOOPT},
    {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"ENOSPC", ENOSPC}, {"EAGAIN", EAGAIN},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INSTRUCTION_LIMIT 512

struct program {
    struct sock_filter instructions[INSTRUCTION_LIMIT];
    unsigned short length;
};

static void append(struct program *program, unsigned short code, uint32_t value, unsigned char met, unsigned char unmet) {
    if (program->length < INSTRUCTION_LIMIT) {
        program->instructions[program->length++] = (struct sock_filter){code, met, unmet, value};
    }
}

static void append_rule(struct program *program, const struct rule *rule, int error) {
    int asks_argument = rule->condition == EQUALS || rule->condition == HAS_BIT;
    append(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    unsigned short kind = rule->condition == FROM_HERE ? BPF_JGE : BPF_JEQ;
    append(program, BPF_JMP | kind | BPF_K, (uint32_t)rule->call, 0, asks_argument ? 3 : 1);
    if (asks_argument) {
        /* The lower half: both machines have it first. */
        size_t place = offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)rule->argument;
        append(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)place, 0, 0);
        append(program, BPF_JMP | (rule->condition == EQUALS ? BPF_JEQ : BPF_JSET) | BPF_K, rule->value, 0, 1);
    }
    append(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA), 0, 0);
}

static int number_of(const char *error) {
    for (size_t index = 0; index < COUNT(errors); index++) {
        if (strcmp(errors[index].name, error) == 0) return errors[index].number;
    }
    return 0;
}

/* `said` is what stands behind the word, `meant` what is meant where the word has no error number of its own. */
static int append_word(struct program *program, const char *word, size_t length, int said, int meant) {
    int found = 0;
    for (size_t index = 0; index < COUNT(rules); index++) {
        const struct rule *rule = &rules[index];
        if (strlen(rule->word) != length || strncmp(rule->word, word, length) != 0) continue;
        append_rule(program, rule, said != 0 ? said : rule->error != 0 ? rule->error : meant != 0 ? meant : ENOSYS);
        found = 1;
    }
    for (size_t index = 0; index < COUNT(lists); index++) {
        if (strlen(lists[index].word) != length || strncmp(lists[index].word, word, length) != 0) continue;
        for (const char *const *entry = lists[index].words; *entry != NULL; entry++) {
            append_word(program, *entry, strlen(*entry), 0, said != 0 ? said : meant);
        }
        found = 1;
    }
    return found;
}

const char *refuse_calls(const char *const *words, int count, const char *error) {
    struct program *program = calloc(1, sizeof *program);
    int meant = error == NULL ? 0 : number_of(error);
    if (program == NULL) return "There is no memory.";
    if (error != NULL && meant == 0) return "There is no such error number.";
    append(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    append(program, BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0);
    append(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    for (int index = 0; index < count; index++) {
        size_t length = strcspn(words[index], "=");
        int said = words[index][length] == '=' ? number_of(words[index] + length + 1) : 0;
        if (words[index][length] == '=' && said == 0) return "There is no such error number.";
        if (!append_word(program, words[index], length, said, meant)) return "There is no such word.";
    }
    append(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    if (program->length == INSTRUCTION_LIMIT) return "There are too many words.";
    struct sock_fprog filter = {program->length, program->instructions};
    /* Root may do without, and programs with more rights than their caller keep them. */
    int result = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
    if (result != 0) {
        result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (result == 0) result = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
    }
    free(program);
    return result == 0 ? NULL : "The kernel takes no filter.";
}

const char *refuse_help(void) {
    static char text[4096];
    text[0] = 0;
    for (size_t index = 0; index < COUNT(rules); index++) {
        if (index > 0 && strcmp(rules[index].word, rules[index - 1].word) == 0) continue;
        strcat(strcat(strcat(text, "  "), rules[index].word), "\n");
    }
    for (size_t index = 0; index < COUNT(lists); index++) {
        strcat(strcat(strcat(text, "  "), lists[index].word), ":");
        for (const char *const *entry = lists[index].words; *entry != NULL; entry++) strcat(strcat(text, " "), *entry);
        strcat(strcat(strcat(text, " ("), lists[index].help), ")\n");
    }
    return text;
}
