// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A program in C that uses CFMessagePort. CProgramTests builds it and runs it:
//
// server NAME          answers each message from a run loop until message 0
// queue NAME           the same, from a dispatch queue
// client NAME ID TEXT  asks, and prints the status and the reply
// facts NAME           prints what the functions return

#include <FoundationPorts.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CFStringRef replyMode = CFSTR("a private mode");  // a constant, as on macOS

static CFStringRef CreateString(const char *text) {
    return CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
}

static CFDataRef Answer(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info) {
    if (msgid == 0) {
        dispatch_async(dispatch_get_main_queue(), ^{ CFRunLoopStop(CFRunLoopGetMain()); });
        return NULL;
    }
    char text[1000];
    snprintf(
        text, sizeof text, "%s got %d: %.*s", (const char *)info, (int)msgid, (int)CFDataGetLength(data),
        CFDataGetBytePtr(data));
    return CFDataCreate(NULL, (const UInt8 *)text, (CFIndex)strlen(text));
}

static int Serve(const char *name, int usesQueue) {
    CFStringRef string = CreateString(name);
    CFMessagePortContext context = {0, "C", NULL, NULL, NULL};
    Boolean shouldFreeInfo = TRUE;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, string, Answer, &context, &shouldFreeInfo);
    if (port == NULL || shouldFreeInfo) return 1;
    if (usesQueue) {
        dispatch_queue_t queue = dispatch_queue_create("server", NULL);
        CFMessagePortSetDispatchQueue(port, queue);
        dispatch_release(queue);
    } else {
        CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopCommonModes);
        CFRelease(source);
    }
    printf("ready\n");
    CFRunLoopRun();
    CFMessagePortInvalidate(port);
    CFRelease(port);
    CFRelease(string);
    return 0;
}

static int Ask(const char *name, const char *id, const char *text) {
    CFStringRef string = CreateString(name);
    CFMessagePortRef port = CFMessagePortCreateRemote(NULL, string);
    CFRelease(string);
    if (port == NULL) {
        printf("no port\n");
        return 0;
    }
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)text, (CFIndex)strlen(text));
    CFDataRef reply = NULL;
    SInt32 status = CFMessagePortSendRequest(port, atoi(id), data, 10, 10, replyMode, &reply);
    printf("status %d, ", (int)status);
    if (reply == NULL) {
        printf("no reply\n");
    } else {
        printf("reply %.*s\n", (int)CFDataGetLength(reply), CFDataGetBytePtr(reply));
        CFRelease(reply);
    }
    CFRelease(data);
    CFRelease(port);
    return 0;
}

static int retainCount;
static const void *Retain(const void *info) {
    retainCount += 1;
    return info;
}
static void Release(const void *info) {
    (void)info;
    retainCount -= 1;
}

static int invalidationCount;
static void Invalidated(CFMessagePortRef port, void *info) {
    (void)port;
    invalidationCount += 1;
    printf("invalidated, info %s, retained %d times\n", info == NULL ? "null" : (const char *)info, retainCount);
}

// A context that is released and not retained: the callout gets it as it is.
static void CallWithoutRetain(CFStringRef name) {
    retainCount = 1;
    CFMessagePortContext context = {0, "C", NULL, Release, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, Answer, &context, NULL);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, replyMode);
    CFDataRef reply = NULL;
    SInt32 status = CFMessagePortSendRequest(port, 1, NULL, 10, 10, replyMode, &reply);
    printf("status %d, retained %d times\n", (int)status, retainCount);
    if (reply != NULL) CFRelease(reply);
    CFMessagePortInvalidate(port);
    printf("retained %d times\n", retainCount);
    CFRelease(source);
    CFRelease(port);
}

static const char *Said(int isTrue) { return isTrue ? "yes" : "no"; }

static int Facts(const char *text) {
    CFStringRef name = CreateString(text);
    CFMessagePortContext context = {0, "C", Retain, Release, NULL};
    Boolean shouldFreeInfo = TRUE;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, Answer, &context, &shouldFreeInfo);
    printf("made %s, frees info %s, retained %d times\n", Said(port != NULL), Said(shouldFreeInfo), retainCount);

    CFMessagePortRef again = CFMessagePortCreateLocal(NULL, name, NULL, NULL, &shouldFreeInfo);
    printf("the same object %s, frees info %s\n", Said(again == port), Said(shouldFreeInfo));
    CFRelease(again);

    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name);
    printf("remote %s %s\n", Said(CFMessagePortIsRemote(remote)), Said(CFMessagePortIsRemote(port)));
    printf("type %s\n", Said(CFGetTypeID(port) == CFMessagePortGetTypeID()));
    CFStringRef type = CFCopyTypeIDDescription(CFMessagePortGetTypeID());
    printf("type's name %s\n", Said(CFEqual(type, CFSTR("CFMessagePort"))));
    CFRelease(type);
    printf("name %s %s\n", Said(CFEqual(CFMessagePortGetName(port), name)), Said(CFEqual(port, again)));

    CFMessagePortContext got = {0, NULL, NULL, NULL, NULL};
    CFMessagePortGetContext(port, &got);
    printf("context %s\n", Said(got.info == context.info));

    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopSourceRef other = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    printf("one source %s\n", Said(source != NULL && source == other));
    CFRelease(other);
    printf("its own name again %s\n", Said(CFMessagePortSetName(port, name)));

    CFMessagePortSetInvalidationCallBack(port, Invalidated);
    printf("callback %s\n", Said(CFMessagePortGetInvalidationCallBack(port) == Invalidated));
    CFMessagePortInvalidate(port);
    CFMessagePortInvalidate(port);
    printf("called %d times, retained %d times\n", invalidationCount, retainCount);
    printf("valid %s %s\n", Said(CFMessagePortIsValid(port)), Said(CFMessagePortIsValid(remote)));
    printf("source valid %s\n", Said(CFRunLoopSourceIsValid(source)));
    printf("a source of an invalid port %s\n", Said(CFMessagePortCreateRunLoopSource(NULL, port, 0) != NULL));
    CFMessagePortSetInvalidationCallBack(port, Invalidated);
    printf("no port %s\n", Said(CFMessagePortCreateRemote(NULL, name) == NULL));
    CFMessagePortInvalidate(NULL);
    CFRelease(source);
    CFRelease(port);

    // The last release frees the name, too.
    CFMessagePortRef last = CFMessagePortCreateLocal(NULL, name, Answer, NULL, NULL);
    printf("the name again %s\n", Said(last != NULL && CFMessagePortIsValid(last)));
    CFRelease(last);
    printf("no port %s\n", Said(CFMessagePortCreateRemote(NULL, name) == NULL));
    CallWithoutRetain(name);
    CFRelease(remote);
    CFRelease(name);
    return 0;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 3 && strcmp(arguments[1], "server") == 0) return Serve(arguments[2], 0);
    if (count == 3 && strcmp(arguments[1], "queue") == 0) return Serve(arguments[2], 1);
    if (count == 5 && strcmp(arguments[1], "client") == 0) return Ask(arguments[2], arguments[3], arguments[4]);
    if (count == 3 && strcmp(arguments[1], "facts") == 0) return Facts(arguments[2]);
    return 64;
}
