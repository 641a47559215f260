// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A side of portbench's contestant "GNUstep NSMessagePort": `server NAME` answers on a named port, `client NAME` sends
// as many requests as portbench orders, and reports how long they took. Descriptor 3 is a socket to portbench, whose
// end is the end of this process.

#import <Foundation/Foundation.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { orders = 3, size = 64 };

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void say(const void *bytes, size_t length) {
    const char *next = bytes;
    while (length > 0) {
        ssize_t sent = send(orders, next, length, MSG_NOSIGNAL);
        if (sent <= 0) exit(1);
        next += sent;
        length -= (size_t)sent;
    }
}

static BOOL send_data(NSData *data, NSPort *to, NSPort *from) {
    NSPortMessage *message = [[NSPortMessage alloc] initWithSendPort:to
                                                         receivePort:from
                                                          components:[NSArray arrayWithObject:data]];
    BOOL sent = [message sendBeforeDate:[NSDate dateWithTimeIntervalSinceNow:10]];
    [message release];
    return sent;
}

static NSData *make_data(void) { return [[NSMutableData alloc] initWithLength:size]; }

static BOOL is_whole(NSPortMessage *message) {
    NSArray *components = [message components];
    return [components count] == 1 && [(NSData *)[components objectAtIndex:0] length] == size;
}

@interface Server : NSObject {
    NSData *answer;
}
- (void)waitForEnd:(NSString *)name;
@end

@implementation Server
- (id)init {
    if ((self = [super init])) answer = make_data();
    return self;
}

- (void)handlePortMessage:(NSPortMessage *)message {
    if (!is_whole(message) || !send_data(answer, [message sendPort], [message receivePort])) exit(1);
}

- (void)waitForEnd:(NSString *)name {
    char byte;
    recv(orders, &byte, 1, 0);
    @autoreleasepool {
        [[NSMessagePortNameServer sharedInstance] removePortForName:name];
        exit(0);
    }
}
@end

@interface Client : NSObject {
    BOOL isAnswered;
}
- (void)serveOrders:(NSPort *)server;
@end

@implementation Client
- (void)handlePortMessage:(NSPortMessage *)message {
    isAnswered = is_whole(message);
}

- (void)requestFrom:(NSPort *)server replyPort:(NSPort *)port data:(NSData *)data {
    @autoreleasepool {
        isAnswered = NO;
        if (!send_data(data, server, port)) exit(1);
        NSRunLoop *loop = [NSRunLoop currentRunLoop];
        NSDate *limit = [NSDate dateWithTimeIntervalSinceNow:10];
        while (!isAnswered && [limit timeIntervalSinceNow] > 0) [loop runMode:NSDefaultRunLoopMode beforeDate:limit];
        if (!isAnswered) exit(1);
    }
}

- (void)serveOrders:(NSPort *)server {
    NSPort *port = [NSMessagePort new];
    [port setDelegate:(id)self];
    [[NSRunLoop currentRunLoop] addPort:port forMode:NSDefaultRunLoopMode];
    NSData *data = make_data();
    say("", 1);
    int64_t order[2];
    while (recv(orders, order, sizeof order, MSG_WAITALL) == sizeof order) {
        int64_t count = order[0], *laps = order[1] ? calloc((size_t)count, sizeof *laps) : NULL;
        int64_t start = now(), last = start;
        for (int64_t i = 0; i < count; i++) {
            [self requestFrom:server replyPort:port data:data];
            if (!laps) continue;
            int64_t time = now();
            laps[i] = time - last;
            last = time;
        }
        int64_t time = now() - start;
        say(&time, sizeof time);
        if (laps) say(laps, (size_t)count * sizeof *laps);
        free(laps);
    }
}
@end

static int serve(NSString *name) {
    NSPort *port = [NSMessagePort new];
    Server *server = [Server new];
    [port setDelegate:(id)server];
    if (![[NSMessagePortNameServer sharedInstance] registerPort:port forName:name]) return 1;
    [[NSRunLoop currentRunLoop] addPort:port forMode:NSDefaultRunLoopMode];
    [NSThread detachNewThreadSelector:@selector(waitForEnd:) toTarget:server withObject:name];
    say("", 1);
    [[NSRunLoop currentRunLoop] run];
    return 1;
}

static int ask(NSString *name) {
    NSPort *server = [[NSMessagePortNameServer sharedInstance] portForName:name];
    if (!server) return 1;
    [[Client new] serveOrders:server];
    return 0;
}

int main(int count, char **arguments) {
    if (count < 3) return 64;
    @autoreleasepool {
        NSString *name = [NSString stringWithUTF8String:arguments[2]];
        return strcmp(arguments[1], "server") == 0 ? serve(name) : ask(name);
    }
}
