// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

/// Lets other processes of the same user see what the run loops of this one do: `portctl trace`.
///
/// A process agrees by ``start(tracing:nameServer:)``. Nothing is recorded before `portctl trace` asks for it, unless
/// the process was started by `portctl trace -- COMMAND`. See `Docs/Tracing.md`.
///
/// - Important: Thread safety: any thread.
public final class TraceService: Sendable {
    /// The id of the message that starts recording; the reply is empty.
    package static let beginID: Int32 = 1
    /// The id of the message that stops recording; the reply is the trace.
    package static let endID: Int32 = 2

    /// The variable in which `portctl trace -- COMMAND` says where the process that it starts is to write:
    /// `<process>:<path>`.
    package static let variable = "SWIFT_PORT_TRACE"

    /// The name of a process's service.
    package static func name(of process: Int32) -> String { "trace.\(process)" }

    fileprivate let recording: Recording  // guards itself
    private let port: LocalMessagePort  // immutable
    private let thread: ResidentThread  // immutable
    private let forkGuard = ForkGuard()  // immutable

    /// Lets run loops of this process be traced from outside, under the name `trace.<process>`, until `stop()`.
    ///
    /// The service has a thread of its own, so it answers also while the loops are busy. Only in a process that
    /// `portctl trace` has started, it writes the trace at the process's end, and for that handles the signals that
    /// would end the process: see `Docs/Tracing.md`.
    ///
    /// - Parameters:
    ///   - loops: which run loops; by default only the main thread's.
    ///   - nameServer: where the name is registered.
    /// - Returns: the service; it ends with the object, which an optimized build releases after its last use: store it
    ///   in a property, or in a variable of `main.swift`.
    /// - Throws: as ``PortNameServer/register(_:name:)``: ``/MessagePort/PortError/Code/nameTaken`` when there is one
    ///   already; ``/MessagePort/PortError/Code/systemCallFailed`` when the system gives no thread for it.
    public static func start(
        tracing loops: [ThreadRunLoop] = [.main], nameServer: PortNameServer = .shared
    ) throws(PortError) -> TraceService {
        let service = try TraceService(loops, nameServer)
        ExitTrace.begin(service)
        return service
    }

    private init(_ loops: [ThreadRunLoop], _ nameServer: PortNameServer) throws(PortError) {
        let recording = Recording(loops)
        thread = try PortError.converting(ResidentThread(name: "trace service"))
        port = LocalMessagePort(nameServer: nameServer) { _, message in recording.answer(message) }
        self.recording = recording
        try port.setName(Self.name(of: sysProcessID()))
        try port.schedule(on: thread.loop)
    }

    deinit {
        stop()
        guard forkGuard.isInherited else { return }
        // A forked child has no copy of the thread, whose locks and the loops' may be held forever there.
        // SAFETY: the references are leaked on purpose: neither object is used or ended.
        _ = unsafe Unmanaged.passRetained(thread)
        _ = unsafe Unmanaged.passRetained(recording)
    }

    /// Ends the service and its recording, if there is one, and waits for the end of its thread. Idempotent. A process
    /// that was started to be traced writes its trace now.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func stop() {
        if forkGuard.isInherited { return }
        beginStop()
        if !thread.isCurrent { thread.join() }  // the last reference may go on the thread itself
        _ = recording.end()
    }

    /// Ends the service and its recording, if there is one, and suspends the task until its thread has ended, or the
    /// task is cancelled. Idempotent. A process that was started to be traced writes its trace now.
    nonisolated(nonsending) public func stop() async {
        if forkGuard.isInherited { return }
        beginStop()
        await thread.join()
        _ = recording.end()
    }

    private func beginStop() {
        ExitTrace.write(if: self)
        port.invalidate()
        thread.stop()
    }
}

/// What a service records of its run loops.
private final class Recording: Sendable {
    private let loops: [ThreadRunLoop]  // immutable
    private let tracer = Mutex<RunLoopTracer?>(nil)

    init(_ loops: [ThreadRunLoop]) {
        self.loops = loops
    }

    /// - Returns: the reply to a message for the service; nil for none, or an error reply.
    func answer(_ message: MachMessage) -> [UInt8]? {
        switch message.id {
        case TraceService.beginID:
            begin()
            return []
        case TraceService.endID:
            guard let tracer = end() else { break }
            return Array(tracer.chromeTrace.utf8)
        default: break
        }
        try? message.replyError(1, "Nothing is recorded; ask it to begin first.")
        return nil
    }

    /// Starts a new recording.
    func begin() {
        _ = end()
        let made = RunLoopTracer()
        for loop in loops { made.attach(to: loop) }
        tracer.withLock { $0 = made }
    }

    /// Stops recording.
    ///
    /// - Returns: the recording; nil when there was none.
    func end() -> RunLoopTracer? {
        let tracer = tracer.withLock { $0.take() }
        if let tracer { for loop in loops { tracer.detach(from: loop) } }
        return tracer
    }
}

/// The trace of a process that was started to be traced. The process writes it when it exits, or when a signal ends it.
private enum ExitTrace {
    private struct State {
        let service: TraceService
        let path: String
        /// Whether a thread is writing the trace, or has written it.
        var isBeingWritten = false
    }

    /// Of the process that writes the file: a forked child that exits leaves the file and the lock alone.
    private static let forkGuard = ForkGuard()
    private static let traced = Mutex<State?>(nil)
    /// Set when the trace was written.
    private static let end = ThreadEvent()

    /// Starts the service's recording, if the process was started for that.
    static func begin(_ service: TraceService) {
        guard let value = sysEnvironment(TraceService.variable), let colon = value.firstIndex(of: ":"),
            Int32(value[..<colon]) == sysProcessID(), !forkGuard.isInherited
        else { return }
        let path = String(value[value.index(after: colon)...])
        let isFirst = traced.withLock { traced in
            defer { if traced == nil { traced = State(service: service, path: path) } }
            return traced == nil
        }
        guard isFirst else { return }
        service.recording.begin()
        atexit { ExitTrace.write() }
        try? sysBeforeEndingSignal { ExitTrace.write() }
    }

    /// Writes the recording, unless that was done.
    ///
    /// - Parameter service: the service whose recording to write; nil for any.
    static func write(if service: TraceService? = nil) {
        if forkGuard.isInherited { return }
        let found = Self.traced.withLock { traced -> State? in
            guard let found = traced, service == nil || service === found.service
            else { return nil }
            traced?.isBeingWritten = true
            return found
        }
        guard let found else { return }
        // A process that exits while an ending signal has the trace written waits for that.
        if found.isBeingWritten { return _ = end.wait(until: .distantFuture) }
        defer { end.set() }
        guard let tracer = found.service.recording.end(), let file = try? sysOpen(found.path, .creating) else { return }
        try? sysTruncate(file.raw, to: 0)
        try? tracer.writeChromeTrace(to: file.raw)
    }
}
