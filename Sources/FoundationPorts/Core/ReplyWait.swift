// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import MessagePort
import Synchronization

/// A port for the reply to one request, with its source and its timer, which are used again for the next: each thread that
/// waits, and each request inside of another one's wait, has its own.
///
/// @unchecked Sendable: used by one thread at a time, but for the timer, which CoreFoundation's locks protect.
final class ReplyWait: @unchecked Sendable {
    enum Outcome {
        case reply(MachMessage)
        /// The receiver has ended, or has dropped the request.
        case dropped
        /// The reply could not be received.
        case failed(PortError)

        /// Whether nothing more comes for the request.
        var isLast: Bool { if case .failed = self { false } else { true } }
    }

    /// What the source's handler has found; used on the thread that waits.
    private final class ReplyState: @unchecked Sendable {
        var outcome: Outcome?
        /// Whether the timer has fired: then the time is up, or the wait does not know yet of its outcome.
        var isTimeUp = false
        /// Retained by the `ReplyWait`.
        unowned var timer: CFRunLoopTimer?

        /// Takes messages until one is the outcome.
        func note(_ receive: () throws(PortError) -> MachMessage?) {
            do throws(PortError) {
                while let message = try receive() {
                    if isTimeUp, message.id == timeIsUp { continue }
                    outcome = message.saysThatRequestWasDropped ? .dropped : .reply(message)
                    return
                }
            } catch {
                if outcome == nil { outcome = .failed(error) }
            }
        }

        /// The run of the loop that has found the outcome may be one inside of a client's timer or observer. It ends, and
        /// that of the wait, which its timer does not end, goes on: so the timer wakes it, unless the wait ends before.
        func wakeLater() {
            guard outcome != nil, let timer else { return }
            CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent() + repetition)
        }
    }

    /// How many are kept for later.
    private static let poolLimit = 16
    /// As in CoreFoundation: before the sources of a program.
    private static let order: CFIndex = -100
    /// A limit for which CoreFoundation makes no timer of its own, which costs more than ours.
    private static let noLimit: CFTimeInterval = 1e10
    /// When its time is up, or its outcome was found by a run inside of a callout, the timer wakes the loop each time,
    /// until the wait that it ends is the innermost.
    private static let repetition: CFTimeInterval = 0.005
    private static let distantFuture: CFAbsoluteTime = 1e11
    /// The id of the message, from this process, that wakes a loop when the time is up.
    private static let timeIsUp = Int32.min

    private let port = MachPort(queueLimit: 4)
    private let source: CFRunLoopSource
    private let timer: CFRunLoopTimer
    private let state = ReplyState()

    /// - Throws: `descriptorLimit`, `systemCallFailed`.
    private init() throws(PortError) {
        let (port, state) = (port, state)
        let portSource = PortSource(try port.doorbell().descriptor) {
            // CoreFoundation waits for edges.
            state.note { () throws(PortError) in try port.tryReceiveAfterEdge() }
            state.wakeLater()
        }
        let right = port.makeSendRight()
        let timer = CFRunLoopTimerCreateWithHandler(nil, Self.distantFuture, Self.repetition, 0, Self.order) { _ in
            state.isTimeUp = true
            _ = try? right.trySend(MachMessage(id: Self.timeIsUp))
        }
        guard let source = portSource.makeRunLoopSource(order: Self.order), let timer else {
            throw PortError(.systemCallFailed)
        }
        (self.source, self.timer) = (source, timer)
        state.timer = timer
    }

    /// - Throws: `descriptorLimit`, `systemCallFailed`.
    static func make() throws(PortError) -> ReplyWait {
        if let wait = ProcessObjects.current.replyWaits.withLock({ $0.popLast() }) { return wait }
        return try ReplyWait()
    }

    /// The right for a request.
    func makeReplyRight() -> SendOnceRight { port.makeSendOnceRight() }

    /// Runs this thread's loop in a mode until the reply has come, the time is up, or another thread ends the wait.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - limit: the time, in seconds.
    ///   - mayWait: called once, when `end()` has an effect; false ends the wait.
    /// - Returns: nil when none has come.
    func run(in mode: CoreFoundation.CFString, within limit: CFTimeInterval, if mayWait: () -> Bool) -> Outcome? {
        let loop = CFRunLoopGetCurrent()
        CoreFoundation.CFRunLoopAddSource(loop, source, mode)
        defer { CoreFoundation.CFRunLoopRemoveSource(loop, source, mode) }
        // NaN is no time.
        guard limit > 0 else {
            _ = mayWait()
            _ = CoreFoundation.CFRunLoopRunInMode(mode, 0, true)
            return state.outcome
        }
        CFRunLoopTimerSetNextFireDate(
            timer, limit < Self.noLimit ? CFAbsoluteTimeGetCurrent() + limit : Self.distantFuture)
        CoreFoundation.CFRunLoopAddTimer(loop, timer, mode)
        if !mayWait() { end() }
        defer { CoreFoundation.CFRunLoopRemoveTimer(loop, timer, mode) }
        while state.outcome == nil, !state.isTimeUp {
            // A stop ends this run, and is lost, as in CoreFoundation.
            if CoreFoundation.CFRunLoopRunInMode(mode, Self.noLimit, true) == .finished { break }
        }
        return state.outcome
    }

    /// Ends the wait as if its time were up. Any thread may call it.
    func end() { CFRunLoopTimerSetNextFireDate(timer, 0) }

    /// Its request was answered, and its time was not up: it may wait for another reply.
    func recycle() {
        if state.isTimeUp { return drop() }
        state.outcome = nil
        let isKept = ProcessObjects.current.replyWaits.withLock { pool in
            if pool.count >= Self.poolLimit { return false }
            pool.append(self)
            return true
        }
        if !isKept { drop() }
    }

    /// What may still come is dropped, and meets no later request.
    func drop() {
        port.invalidate()
        CFRunLoopSourceInvalidate(source)
        CFRunLoopTimerInvalidate(timer)
    }
}

extension MachMessage {
    /// Whether it is the notice that a reply right was dropped unused, or used for an error. A reply may have any id.
    fileprivate var saysThatRequestWasDropped: Bool {
        id == Self.sendOnceNotification && components.isEmpty || remoteError != nil
    }
}
