// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import PortSystem
import Synchronization
import TestSupport
import Testing

/// A delegate that calls a closure.
final class Handler: NSObject, NSMachPortDelegate, Sendable {
    private let body: @Sendable (PortMessage) -> Void

    init(_ body: @escaping @Sendable (PortMessage) -> Void) { self.body = body }

    func handle(_ message: PortMessage) { body(message) }
}

/// A delegate that keeps the messages' numbers.
final class Numbers: NSObject, NSMachPortDelegate, Sendable {
    private let list = Mutex<[UInt32]>([])
    var all: [UInt32] { list.withLock { $0 } }

    func handle(_ message: PortMessage) {
        let number = message.msgid
        list.withLock { $0.append(number) }
    }
}

/// Counts the notifications that a port posts, until it is released.
final class InvalidityCounter: Sendable {
    private let count = Mutex(0)
    private nonisolated(unsafe) let observer: any NSObjectProtocol  // used by init and deinit

    init(_ port: Port) {
        nonisolated(unsafe) weak var counter: InvalidityCounter?
        observer = NotificationCenter.default.addObserver(
            forName: Port.didBecomeInvalidNotification, object: port, queue: nil
        ) { _ in counter?.count.withLock { $0 += 1 } }
        counter = self
    }

    var value: Int { count.withLock { $0 } }

    deinit { NotificationCenter.default.removeObserver(observer) }
}

extension Port {
    /// Sends to this port with a number; waits for room until the watchdog's time.
    @discardableResult
    func send(_ number: Int, _ components: [Any] = [], from port: Port? = nil, before date: Date = .watchdog) -> Bool {
        send(before: date, msgid: number, components: NSMutableArray(array: components), from: port, reserved: 0)
    }
}

extension Date {
    /// The end of a wait that an event ends.
    static var watchdog: Date { Date(timeIntervalSinceNow: Double(Watchdog.longTimeout.components.seconds)) }
}

/// Runs the current thread's loop until a condition holds, which its sources bring about.
func runFoundationLoop(
    _ mode: RunLoop.Mode = .default, until condition: () -> Bool, _ location: SourceLocation = #_sourceLocation
) {
    let end = Date.watchdog
    while !condition() {
        if Date() > end { return Watchdog.expired("the run loop's condition", sourceLocation: location) }
        if !RunLoop.current.run(mode: mode, before: end) {
            Issue.record("The mode is empty.", sourceLocation: location)
            return
        }
    }
}

/// Waits for what another thread brings about, without an event.
func poll(_ what: String, _ location: SourceLocation = #_sourceLocation, until condition: () -> Bool) {
    let deadline = Watchdog.deadline
    while !condition() {
        if .now >= deadline { return Watchdog.expired(what, sourceLocation: location) }
        yieldThread()
    }
}

/// A name that no other test and no other process has.
func freshName(_ stem: String) -> String { "mach-tests.\(getpid()).\(stem)" }

/// What the library and Foundation make once: the names, the thread for ends, the main loop, and the main queue's source.
@Sendable func warmUpMachPorts() throws {
    // Each mode of a loop has a descriptor, as long as the loop.
    let anchor = NSMachPort()
    RunLoop.main.add(anchor, forMode: RunLoop.Mode("private"))
    anchor.invalidate()
    try PortBench.warmUp()
    try warmUpIOThread()
    let port = MachPort()
    try PortNameServer.shared.register(port, name: freshName("warm-up"))
    let sender = NSMachBootstrapServer.shared.port(forName: freshName("warm-up"))
    sender?.invalidate()
    port.invalidate()
    try warmedUp.get()
}

/// A port of another process was watched.
private let warmedUp = Result {
    let name = freshName("warm-up.peer")
    let child = try ChildProcess(try builtProduct("mach-port-peer"), ["hold", name])
    _ = try child.nextLine()
    NSMachBootstrapServer.shared.port(forName: name)?.invalidate()
    try child.waitForExit()
}

extension Trait where Self == LeakCheck {
    static var machPorts: LeakCheck { .leakCheck(settles: true, warmingUp: warmUpMachPorts) }
}
