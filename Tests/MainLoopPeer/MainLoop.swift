// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import PortSystem
import RunLoopCore

/// What the scenarios need of a run loop of the main thread.
protocol MainLoop: Sendable {
    /// Runs the default mode, or another, for some seconds at most.
    func run(_ seconds: Double, mode: String?) -> String
    func stop()
    func wakeUp()
    /// Calls the handler with each activity's name in the default mode.
    func observe(_ handler: @escaping @Sendable (String) -> Void)
    /// A custom source in the default mode; the returned closure signals it.
    func source(_ perform: @escaping @Sendable () -> Void) -> @Sendable () -> Void
    /// A port-based source in the default mode that is always ready.
    func stream(_ perform: @escaping @Sendable () -> Void)
    /// A timer in the default mode.
    func timer(after seconds: Double, _ handler: @escaping @Sendable () -> Void)
    func addCommonMode(_ name: String)
}

struct OurMainLoop: MainLoop {
    private var loop: ThreadRunLoop { .main }

    func run(_ seconds: Double, mode: String?) -> String {
        let result = loop.run(mode: mode.map { RunLoopMode($0) } ?? .default, for: .seconds(seconds))
        switch result {
        case .finished: return "finished"
        case .stopped: return "stopped"
        case .timedOut: return "timedOut"
        case .handledSource: return "handledSource"
        }
    }

    func stop() { loop.stop() }
    func wakeUp() { loop.wakeUp() }

    func observe(_ handler: @escaping @Sendable (String) -> Void) {
        loop.add(RunLoopObserver(activities: .all) { _, activity in handler(activity.description) })
    }

    func source(_ perform: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let source = RunLoopSource(perform: perform)
        loop.add(source)
        return { source.signal() }
    }

    func stream(_ perform: @escaping @Sendable () -> Void) {
        loop.add(RunLoopSource(readiness: { true }, perform: perform))
    }

    func timer(after seconds: Double, _ handler: @escaping @Sendable () -> Void) {
        loop.add(RunLoopTimer(after: .seconds(seconds)) { _ in handler() })
    }

    func addCommonMode(_ name: String) { loop.addCommonMode(RunLoopMode(name)) }
}

struct CoreFoundationMainLoop: MainLoop {
    private var loop: CFRunLoop { CFRunLoopGetMain() }

    func run(_ seconds: Double, mode: String?) -> String {
        let name = mode.map { unsafeBitCast(NSString(string: $0), to: CFString.self) } ?? kCFRunLoopDefaultMode
        switch CFRunLoopRunInMode(name, seconds, false).rawValue {
        case 1: return "finished"
        case 2: return "stopped"
        case 3: return "timedOut"
        default: return "handledSource"
        }
    }

    func stop() { CFRunLoopStop(loop) }
    func wakeUp() { CFRunLoopWakeUp(loop) }

    func observe(_ handler: @escaping @Sendable (String) -> Void) {
        let names: [UInt: String] = [
            1: "entry", 2: "beforeTimers", 4: "beforeSources", 32: "beforeWaiting", 64: "afterWaiting", 128: "exit",
        ]
        let observer = CFRunLoopObserverCreateWithHandler(nil, 0x0FFF_FFFF, true, 0) { _, activity in
            handler(names[UInt(activity.rawValue)] ?? "activity \(activity.rawValue)")
        }
        CFRunLoopAddObserver(loop, observer, kCFRunLoopDefaultMode)
    }

    func source(_ perform: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let box = Unmanaged.passRetained(Box(perform))
        var context = CFRunLoopSourceContext()
        context.info = box.toOpaque()
        context.perform = { info in
            guard let info else { return }
            Unmanaged<Box>.fromOpaque(info).takeUnretainedValue().body()
        }
        let source = CFRunLoopSourceCreate(nil, 0, &context)
        CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
        // A source of CoreFoundation may be signalled on any thread.
        nonisolated(unsafe) let shared = source
        return { CFRunLoopSourceSignal(shared) }
    }

    func stream(_ perform: @escaping @Sendable () -> Void) {
        guard let event = try? EventDescriptor(.eventfd) else { return say("no eventfd") }
        event.signal()
        let stream = Stream(event, perform)
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passRetained(stream).toOpaque()
        context.getPort = { info in info.map { Unmanaged<Stream>.fromOpaque($0).takeUnretainedValue().event.raw } ?? -1
        }
        context.perform = { info in
            if let info { Unmanaged<Stream>.fromOpaque(info).takeUnretainedValue().perform() }
        }
        let source = withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
        CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
    }

    func timer(after seconds: Double, _ handler: @escaping @Sendable () -> Void) {
        let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent() + seconds, 0, 0, 0) { _ in handler()
        }
        CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode)
    }

    func addCommonMode(_ name: String) {
        CFRunLoopAddCommonMode(loop, unsafeBitCast(NSString(string: name), to: CFString.self))
    }
}

/// An eventfd that is readable again before each call: CFRunLoop has read it.
private final class Stream: Sendable {
    let event: EventDescriptor
    private let body: @Sendable () -> Void

    init(_ event: consuming EventDescriptor, _ body: @escaping @Sendable () -> Void) {
        self.event = event
        self.body = body
    }

    func perform() {
        event.signal()
        body()
    }
}

/// A closure behind a C callback's pointer.
private final class Box: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}
