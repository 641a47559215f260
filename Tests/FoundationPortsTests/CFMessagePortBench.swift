// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import FoundationPorts
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// What tests of CFMessagePort share.
enum PortBench {
    private static let count = Atomic<Int>(0)

    /// A name that no other test uses.
    static func name(_ text: String = "port") -> String {
        "test.\(getpid()).\(text).\(count.add(1, ordering: .relaxed).newValue)"
    }

    /// What a process keeps: the main loop, the thread for notices of ends, the I/O thread, the directory of names.
    @Sendable static func warmUp() throws {
        try warmUpIOThread()
        _ = CFRunLoopGetMain()
        try warmedUp.get()
        settle()
    }

    private static let warmedUp = Result {
        CFMessagePortInvalidate(
            CFMessagePortCreateLocal(nil, PortBench.name() as CFString, { _, _, _, _ in nil }, nil, nil))
        let name = PortBench.name("warm-up")
        let server = try peer("serve", name)
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        let ended = DispatchSemaphore(value: 0)
        endOfWarmUp.withLock { $0 = ended }
        CFMessagePortSetInvalidationCallBack(remote) { _, _ in endOfWarmUp.withLock { $0 }?.signal() }
        server.kill()
        ended.wait()
        try server.waitForExit()
    }

    /// Waits until a queue has released the ports that it served.
    static func finish(_ queue: DispatchQueue) {
        // The first lets blocks run that release a port, the second what they have left to the queue.
        for _ in 0..<2 { queue.sync(flags: .barrier) {} }
    }

    /// Waits until the threads that notice and announce ends are done with those of a test.
    static func settle() {
        let done = (Gate("the thread for ends"), Gate("the main queue"))
        if let thread = try? ProcessObjects.current.threadForEnds() { thread.loop.perform { done.0.open() } }
        done.0.wait()
        DispatchQueue.main.async { done.1.open() }
        done.1.wait()
        waitForIOThread()
    }
    private static let endOfWarmUp = Mutex<DispatchSemaphore?>(nil)

    /// Ends the ports for replies that wait for the next request.
    static func dropReplyWaits() {
        let waits = ProcessObjects.current.replyWaits.withLock { waits in
            defer { waits = [] }
            return waits
        }
        for wait in waits { wait.drop() }
    }

    /// Starts `cf-port-peer`, and waits for its first line, unless that is its last.
    static func peer(_ command: String, _ words: String...) throws -> ChildProcess {
        let environment = command.hasPrefix("refusals") ? withoutLeakSearch : [:]
        let child = try ChildProcess(try builtProduct("cf-port-peer"), [command] + words, environment: environment)
        if command == "stream" { return child }
        let line = try child.nextLine()
        #expect(line == "ready", "\(command)")
        return child
    }
}

/// Runs a test's body on a thread with a run loop of its own, which ends with the thread.
func onLoopThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await onNewThread {
        defer {
            PortBench.dropReplyWaits()
            PortBench.settle()
        }
        try body()
    }
}

/// The status of a request and its reply's text.
struct Answer: Equatable, CustomStringConvertible {
    var status: Int32
    var text: String?

    init(_ status: Int32, _ text: String? = nil) { (self.status, self.text) = (status, text) }

    var description: String { "\(status) \(text ?? "nil")" }
}

/// Sends a request whose limits are generous, and returns its answer.
func ask(
    _ port: CFMessagePort?, _ id: Int32, _ text: String? = "", send: CFTimeInterval = 30,
    receive: CFTimeInterval = 60, mode: CFRunLoopMode? = .defaultMode
) -> Answer {
    var reply: Unmanaged<CFData>?
    let data = text.map { Data($0.utf8) } as CFData?
    let status = CFMessagePortSendRequest(port, id, data, send, receive, mode?.rawValue, &reply)
    return Answer(status, reply.map { String(decoding: $0.takeRetainedValue() as Data, as: UTF8.self) })
}

/// A reply with a text.
func reply(_ text: String) -> Unmanaged<CFData>? { .passRetained(Data(text.utf8) as CFData) }

/// The text of a callback's data.
func text(_ data: CFData?) -> String { String(decoding: (data ?? NSData()) as Data, as: UTF8.self) }

/// Makes a local port and puts it on this thread's loop.
func serve(
    _ name: String, in mode: CFRunLoopMode = .defaultMode,
    _ callback: @escaping (CFMessagePort?, Int32, CFData?, UnsafeMutableRawPointer?) -> Unmanaged<CFData>?
) throws -> CFMessagePort {
    let port = try #require(CFMessagePortCreateLocal(nil, name as CFString, callback, nil, nil))
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), mode)
    return port
}

/// A local port on the loop of a thread of its own.
final class PortThread: Sendable {
    let port: CFMessagePort
    private let loop: CFRunLoop
    private let thread: TestThread<Void>

    init(_ name: String, _ callback: @escaping CFMessagePortCallBack) throws {
        let made = Mutex<(CFMessagePort, CFRunLoop)?>(nil)
        let isReady = Gate("the port \(name)")
        thread = runOnThread(name: "port-thread") {
            defer { isReady.open() }
            let port = try serve(name, callback)
            made.withLock { $0 = (port, CFRunLoopGetCurrent()) }
            isReady.open()
            CFRunLoopRun()
        }
        isReady.wait()
        (port, loop) = try #require(made.withLock { $0 })
    }

    /// Invalidates the port, and waits for the thread.
    func end() throws {
        CFMessagePortInvalidate(port)
        CFRunLoopStop(loop)
        CFRunLoopWakeUp(loop)
        try thread.join()
    }
}

/// Runs this thread's loop until a condition holds; records an issue when the watchdog ends that.
///
/// A limit of CoreFoundation's own would have dispatch retain the loop for a moment, which may outlast the thread.
func runLoop(
    _ mode: CFRunLoopMode = .defaultMode, until condition: () -> Bool,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let deadline = Watchdog.deadline
    let loop = CFRunLoopGetCurrent()
    withoutActuallyEscaping(condition) { condition in
        let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0.01, 0, 0) { _ in
            if condition() || .now >= deadline { CFRunLoopStop(loop) }
        }
        CFRunLoopAddTimer(loop, timer, mode)
        while !condition(), .now < deadline { CFRunLoopRunInMode(mode, noLimit, true) }
        CFRunLoopTimerInvalidate(timer)
    }
    if !condition() { Watchdog.expired("the loop's condition", sourceLocation: sourceLocation) }
}

/// A limit of a run for which CoreFoundation makes no timer.
let noLimit: CFTimeInterval = 1e10
