// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

/// Lets other processes of the same user see what the run loops of this one do: `portctl trace`.
///
/// A process agrees by ``start(tracing:nameServer:)``. Nothing is recorded before somebody asks for it, or the process
/// was started by `portctl trace -- COMMAND`. See `Docs/Tracing.md`.
///
/// - Important: Thread safety: any thread.
public final class TraceService: Sendable {
    /// What a message to the service asks for.
    package enum Order {
        /// Records from now on; an empty reply says so.
        package static let begin: Int32 = 1
        /// Records no more; the reply is the trace.
        package static let end: Int32 = 2
    }

    /// In it `portctl trace -- COMMAND` tells the process that it starts where to write: `<process>:<path>`.
    package static let variable = "SWIFT_PORT_TRACE"

    /// The name of a process's service.
    package static func name(of process: Int32) -> String { "trace.\(process)" }

    private let loops: [ThreadRunLoop]  // immutable
    private let tracer: Mutex<RunLoopTracer?>
    private let port: LocalMessagePort  // immutable
    private let thread: ResidentThread  // immutable

    /// Lets run loops of this process be traced from outside, under the name `trace.<process>`, until ``stop()``.
    ///
    /// The service has a thread of its own, so it answers also while the loops are busy. In a process that `portctl
    /// trace` has started, and in no other, it has the trace written at the process's end, and for that handles the
    /// signals that would end it: see `Docs/Tracing.md`.
    ///
    /// - Parameters:
    ///   - loops: which run loops; at first the main thread's alone.
    ///   - nameServer: where the name is registered.
    /// - Returns: the service; it ends with the object, which an optimized build releases after its last use: keep it in a
    ///   property, or in a variable of `main.swift`.
    /// - Throws: as ``PortNameServer/register(_:name:)``: ``/MessagePort/PortError/Code/nameTaken`` when there is one
    ///   already; ``/MessagePort/PortError/Code/systemCallFailed`` when there is no thread for it.
    public static func start(
        tracing loops: [ThreadRunLoop] = [.main], nameServer: PortNameServer = .shared
    ) throws(PortError) -> TraceService {
        let service = try TraceService(loops, nameServer)
        AtExit.begin(service)
        return service
    }

    private init(_ loops: [ThreadRunLoop], _ nameServer: PortNameServer) throws(PortError) {
        let holder = Holder()
        do throws(SystemError) {
            thread = try ResidentThread(name: "trace service")
        } catch {
            throw PortError(error)
        }
        port = LocalMessagePort(nameServer: nameServer) { _, message in
            holder.service.withLock { $0.object }?.answer(message)
        }
        self.loops = loops
        tracer = Mutex(nil)
        holder.service.withLock { $0 = WeakReference(object: self) }
        try port.setName(Self.name(of: sysProcessID()))
        try port.schedule(on: thread.loop)
    }

    deinit {
        stop()
    }

    /// Ends the service, and the recording that is under way; waits for the end of its thread. Idempotent. A process
    /// that was started to be traced writes its trace now.
    public func stop() {
        AtExit.write(if: self)
        port.invalidate()
        thread.stop()
        if !thread.isCurrent { thread.join() }  // the last reference may go on the thread itself
        _ = end()
    }

    private func answer(_ message: MachMessage) -> [UInt8]? {
        switch message.id {
        case Order.begin:
            begin()
            return []
        case Order.end:
            guard let tracer = end() else { break }
            return Array(tracer.chromeTrace.utf8)
        default: break
        }
        try? message.replyError(1, "Nothing is recorded; ask it to begin first.")
        return nil
    }

    /// Records anew.
    fileprivate func begin() {
        _ = end()
        let made = RunLoopTracer()
        for loop in loops { made.attach(to: loop) }
        tracer.withLock { $0 = made }
    }

    /// Records no more.
    ///
    /// - Returns: what was recorded; nil when nothing was.
    fileprivate func end() -> RunLoopTracer? {
        let tracer = tracer.withLock { $0.take() }
        if let tracer { for loop in loops { tracer.detach(from: loop) } }
        return tracer
    }

    private final class Holder: Sendable {
        let service = Mutex(WeakReference<TraceService>(object: nil))
    }
}

/// An object that is not kept alive.
private struct WeakReference<Object: AnyObject & Sendable>: Sendable {
    weak let object: Object?
}

/// The trace of a process that was started to be traced, which it writes when it exits, or a signal ends it.
private enum AtExit {
    private struct Traced {
        let service: TraceService
        let path: String
        /// A forked child that exits leaves the file alone.
        let process = sysProcessID()
        /// Whether somebody writes the trace, or has written it.
        var isTaken = false
    }

    private static let traced = Mutex<Traced?>(nil)
    /// Set when the trace was written.
    private static let end = ThreadEvent()

    /// Has the service record from now on, if the process was started for that.
    static func begin(_ service: TraceService) {
        guard let value = sysEnvironment(TraceService.variable), let colon = value.firstIndex(of: ":"),
            Int32(value[..<colon]) == sysProcessID()
        else { return }
        let path = String(value[value.index(after: colon)...])
        let isFirst = traced.withLock { traced in
            defer { if traced == nil { traced = Traced(service: service, path: path) } }
            return traced == nil
        }
        guard isFirst else { return }
        service.begin()
        atexit { AtExit.write() }
        try? sysBeforeEndingSignal { AtExit.write() }
    }

    /// Writes what was recorded, if that was not done.
    ///
    /// - Parameter service: only that of this service; nil for all.
    static func write(if service: TraceService? = nil) {
        let found = Self.traced.withLock { traced -> Traced? in
            guard let found = traced, found.process == sysProcessID(), service == nil || service === found.service
            else { return nil }
            traced?.isTaken = true
            return found
        }
        guard let found else { return }
        // A process that exits while a signal has the trace written waits for that.
        if found.isTaken { return _ = end.wait(until: .distantFuture) }
        defer { end.set() }
        guard let tracer = found.service.end(), let file = try? sysOpen(found.path, .creating) else { return }
        try? sysTruncate(file.raw, to: 0)
        try? tracer.writeChromeTrace(to: file.raw)
    }
}
