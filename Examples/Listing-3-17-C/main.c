// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-17 to 3-19 in C: the main thread gives a worker the name of its port; the worker checks in with the name of
// its own; then each sends to the other's port. README.md has the command that builds it.

#include <FoundationPorts.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define kCheckinMessage 100
#define kWorkMessage 101
#define kLeaveMessage 102
#define kDoneMessage 103

static CFDataRef MainThreadResponseHandler(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info);
static CFDataRef ProcessClientRequest(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info);
static void *ServerThreadEntryPoint(void *param);
static void GiveWork(CFMessagePortRef port);
static void Print(const char *side, SInt32 msgid, CFDataRef data);
static CFDataRef CreateData(const char *text);

// Listing 3-17: attaching a message port to a new thread.
static int MySpawnThread(pthread_t *taskID) {
    // Create a local port for receiving responses.
    CFStringRef myPortName;
    CFMessagePortRef myPort;
    CFRunLoopSourceRef rlSource;
    CFMessagePortContext context = {0, NULL, NULL, NULL, NULL};
    Boolean shouldFreeInfo;

    // Create a string with the port name.
    myPortName = CFStringCreateWithFormat(NULL, NULL, CFSTR("com.myapp.MainThread"));

    // Create the port.
    myPort = CFMessagePortCreateLocal(NULL, myPortName, &MainThreadResponseHandler, &context, &shouldFreeInfo);

    if (myPort != NULL) {
        // The port was successfully created.
        // Now create a run loop source for it.
        rlSource = CFMessagePortCreateRunLoopSource(NULL, myPort, 0);

        if (rlSource) {
            // Add the source to the current run loop.
            CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, kCFRunLoopDefaultMode);

            // Once installed, these can be freed.
            CFRelease(myPort);
            CFRelease(rlSource);
        }
    }

    // Create the thread and continue processing.
    return pthread_create(taskID, NULL, ServerThreadEntryPoint, (void *)myPortName);
}

// Listing 3-18: the main thread's port message handler.
static CFDataRef MainThreadResponseHandler(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info) {
    static CFMessagePortRef activeThread;
    if (msgid == kCheckinMessage) {
        CFMessagePortRef messagePort;
        CFStringRef threadPortName;
        CFIndex bufferLength = CFDataGetLength(data);
        UInt8 *buffer = CFAllocatorAllocate(NULL, bufferLength, 0);

        CFDataGetBytes(data, CFRangeMake(0, bufferLength), buffer);
        threadPortName = CFStringCreateWithBytes(NULL, buffer, bufferLength, kCFStringEncodingASCII, FALSE);
        Print("main", msgid, data);

        // You must obtain a remote message port by name.
        messagePort = CFMessagePortCreateRemote(NULL, threadPortName);

        if (messagePort) {
            // Retain and save the thread's comm port for future reference.
            activeThread = (CFMessagePortRef)CFRetain(messagePort);
            GiveWork(messagePort);

            // Since the port is retained above, release it here.
            CFRelease(messagePort);
        }

        // Clean up.
        CFRelease(threadPortName);
        CFAllocatorDeallocate(NULL, buffer);
    } else {
        // Process other messages.
        Print("main", msgid, data);
        CFMessagePortSendRequest(activeThread, kLeaveMessage, NULL, 10, 0, NULL, NULL);
        CFRelease(activeThread);
        CFMessagePortInvalidate(local);
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    return NULL;
}

// A request to the worker, and its reply. In a mode of its own nothing else runs meanwhile.
static void GiveWork(CFMessagePortRef port) {
    CFDataRef work = CreateData("six times seven");
    CFDataRef reply = NULL;
    SInt32 status = CFMessagePortSendRequest(port, kWorkMessage, work, 10, 10, CFSTR("com.myapp.reply"), &reply);
    CFRelease(work);
    if (status == kCFMessagePortSuccess) {
        printf("main: the reply: %.*s\n", (int)CFDataGetLength(reply), CFDataGetBytePtr(reply));
        CFRelease(reply);
    } else {
        printf("main: status %d\n", (int)status);
    }
}

// Listing 3-19: setting up the thread structures.
static void *ServerThreadEntryPoint(void *param) {
    // Create the remote port to the main thread.
    CFMessagePortRef mainThreadPort;
    CFStringRef portName = (CFStringRef)param;

    mainThreadPort = CFMessagePortCreateRemote(NULL, portName);

    // Free the string that was passed in param.
    CFRelease(portName);

    // Create a port for the worker thread.
    CFStringRef myPortName = CFStringCreateWithFormat(NULL, NULL, CFSTR("com.MyApp.Thread-%d"), 1);

    // Store the port in this thread's context info for later reference.
    CFMessagePortContext context = {0, mainThreadPort, NULL, NULL, NULL};
    Boolean shouldFreeInfo;

    CFMessagePortRef myPort =
        CFMessagePortCreateLocal(NULL, myPortName, &ProcessClientRequest, &context, &shouldFreeInfo);

    if (shouldFreeInfo) {
        // Couldn't create a local port, so kill the thread.
        exit(1);
    }

    CFRunLoopSourceRef rlSource = CFMessagePortCreateRunLoopSource(NULL, myPort, 0);
    if (!rlSource) {
        // Couldn't create a source, so kill the thread.
        exit(1);
    }

    // Add the source to the current run loop.
    CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, kCFRunLoopDefaultMode);

    // Once installed, these can be freed.
    CFRelease(myPort);
    CFRelease(rlSource);

    // Package up the port name and send the check-in message.
    CFDataRef outData;
    CFIndex stringLength = CFStringGetLength(myPortName);
    UInt8 *buffer = CFAllocatorAllocate(NULL, stringLength, 0);

    CFStringGetBytes(
        myPortName, CFRangeMake(0, stringLength), kCFStringEncodingASCII, 0, FALSE, buffer, stringLength, NULL);

    outData = CFDataCreate(NULL, buffer, stringLength);

    printf("worker: checks in with the name of its port\n");
    CFMessagePortSendRequest(mainThreadPort, kCheckinMessage, outData, 0.1, 0.0, NULL, NULL);

    // Clean up thread data structures.
    CFRelease(outData);
    CFRelease(myPortName);
    CFAllocatorDeallocate(NULL, buffer);

    // Enter the run loop.
    CFRunLoopRun();
    printf("worker: the run returned\n");
    CFRelease(mainThreadPort);
    return NULL;
}

// What the chapter leaves to the reader: the worker's handler.
static CFDataRef ProcessClientRequest(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info) {
    Print("worker", msgid, data);
    if (msgid == kLeaveMessage) {
        CFMessagePortInvalidate(local);  // nothing is left in this thread's run loop, so it returns
        return NULL;
    }
    // The other direction: a message of its own, besides the reply.
    CFDataRef done = CreateData("the work is done");
    CFMessagePortSendRequest((CFMessagePortRef)info, kDoneMessage, done, 10, 0, NULL, NULL);
    CFRelease(done);
    return CreateData("42");  // the system releases it
}

static void Print(const char *side, SInt32 msgid, CFDataRef data) {
    printf("%s: message %d: %.*s\n", side, (int)msgid, (int)CFDataGetLength(data), CFDataGetBytePtr(data));
}

static CFDataRef CreateData(const char *text) {
    return CFDataCreate(NULL, (const UInt8 *)text, (CFIndex)__builtin_strlen(text));
}

int main(void) {
    // A line is printed at once, also into a pipe.
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t taskID;
    if (MySpawnThread(&taskID) != 0) return 1;
    CFRunLoopRun();
    pthread_join(taskID, NULL);
    return 0;
}
