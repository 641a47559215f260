// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CoreFoundation
import Dispatch
import Foundation

/// A thread that runs CoreFoundation's run loop with one port-based source, an eventfd.
///
/// @unchecked: what is variable is written before the thread starts, or on it before `init` returns.
final class CoreFoundationThread: @unchecked Sendable {
    private let eventfd = bare_make_eventfd()
    private var perform: () -> Void = {}
    private var source: CFRunLoopSource?
    private var loop: CFRunLoop?
    private var isBound: Result<Void, any Error> = .success(())
    private let ended = DispatchSemaphore(value: 0)

    init(at processor: Processor = .any) throws {
        let started = DispatchSemaphore(value: 0)
        let thread = Thread { [self] in
            isBound = Result { try processor.bind() }
            loop = CFRunLoopGetCurrent()
            source = makeSource()
            CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
            started.signal()
            CFRunLoopRun()
            ended.signal()
        }
        thread.start()
        started.wait()
        do {
            try isBound.get()
        } catch {
            end()
            throw error
        }
    }

    /// Sets the handler that is called on the thread for each signal; to be set before the first.
    func setHandler(_ handler: @escaping () -> Void) {
        perform = handler
    }

    /// Makes the handler be called on the thread.
    func ring() {
        bare_ring(eventfd)
    }

    func end() {
        CFRunLoopStop(loop)
        ended.wait()
        CFRunLoopSourceInvalidate(source)
        perform = {}
        close(eventfd)
    }

    private func makeSource() -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.getPort = { CoreFoundationThread.at($0)?.eventfd ?? -1 }
        // The loop has read the eventfd already.
        context.perform = { CoreFoundationThread.at($0)?.perform() }
        return withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
    }

    private static func at(_ info: UnsafeMutableRawPointer?) -> CoreFoundationThread? {
        info.map { Unmanaged<CoreFoundationThread>.fromOpaque($0).takeUnretainedValue() }
    }
}

extension Contestant {
    /// Round trips between two threads, each in CFRunLoop with a version-1 source.
    static func coreFoundationPair(on placement: Placement = .anywhere) throws -> Contestant {
        let near = try CoreFoundationThread(at: placement.near)
        let far = try CoreFoundationThread(at: placement.far)
        let rally = Rally()
        far.setHandler { near.ring() }
        // The first signal starts the clock.
        let first = FirstCall()
        near.setHandler {
            if first.isFirst { rally.begin { far.ring() } } else { rally.answered { far.ring() } }
        }
        return Contestant(
            name: "CFRunLoop source1",
            run: { count, laps in
                try rally.run(count, laps) {
                    first.isFirst = true
                    near.ring()
                }
            },
            end: {
                near.end()
                far.end()
            })
    }
}

/// Whether a handler is called for the first time in a run.
///
/// @unchecked: set before the run, read and cleared on the handler's thread.
private final class FirstCall: @unchecked Sendable {
    private var value = false

    var isFirst: Bool {
        get {
            defer { value = false }
            return value
        }
        set { value = newValue }
    }
}
