// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#include "CFoundationPorts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

// As in the toolchain's CFRuntime.h, with Swift's reference count.
typedef struct {
    uintptr_t isa;
    uintptr_t reference_count;
    _Atomic(uint64_t) info;
} RuntimeBase;

typedef struct {
    long version;
    const char *name;
    void (*init)(const void *object);
    const void *(*copy)(const void *allocator, const void *object);
    void (*finalize)(const void *object);
    unsigned char (*equal)(const void *left, const void *right);
    unsigned long (*hash)(const void *object);
    const void *(*copy_formatted)(const void *object, const void *options);
    const void *(*copy_description)(const void *object);
    void (*reclaim)(const void *object);
    uint32_t (*count_references)(intptr_t operation, const void *object);
    uintptr_t alignment;
} RuntimeClass;

extern unsigned long _CFRuntimeRegisterClass(const RuntimeClass *class);
extern const void *_CFRuntimeCreateInstance(const void *allocator, unsigned long type, long extra, unsigned char *category);

typedef struct {
    RuntimeBase base;
    void *body;
} Port;

static FPPortClass functions;
static unsigned long type;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *fp_port_body(const void *port) { return ((const Port *)port)->body; }

static void finalize(const void *port) {
    void *body = fp_port_body(port);
    if (body != NULL) functions.finalize(body);
}

static const void *copy_description(const void *port) {
    void *body = fp_port_body(port);
    return body == NULL ? NULL : functions.copyDescription(body);
}

static const RuntimeClass class = {
    .name = "CFMessagePort", .finalize = finalize, .copy_description = copy_description,
};

unsigned long fp_port_type(const FPPortClass *given) {
    pthread_mutex_lock(&lock);
    if (type == 0) {
        functions = *given;
        type = _CFRuntimeRegisterClass(&class);
    }
    unsigned long result = type;
    pthread_mutex_unlock(&lock);
    return result;
}

const void *fp_port_create(unsigned long port_type, const void *allocator, void *body) {
    Port *port = (Port *)_CFRuntimeCreateInstance(allocator, port_type, sizeof(Port) - sizeof(RuntimeBase), NULL);
    if (port != NULL) port->body = body;
    return port;
}
