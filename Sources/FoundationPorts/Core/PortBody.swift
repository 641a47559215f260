// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Dispatch
import Foundation
import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization

/// The state of a CFMessagePort. The object of CoreFoundation's runtime owns it; both faces, C's and Swift's, work on it.
final class PortBody: Sendable {
    /// Calls the client: port, number, data, info. Returns the reply.
    typealias Callback = (CFMessagePort, Int32, NSData, UnsafeMutableRawPointer?) -> NSData?

    enum Kind: Sendable {
        case local(MachPort)
        case remote(SendRight)
    }

    // @unchecked Sendable: used under the body's lock; what it has of the client's is called and released without it.
    // Not copied: Swift 6.3.1 releases a weak reference in a copy once too often.
    struct State: ~Copyable, @unchecked Sendable {
        var isValid = true
        /// Nil for a local port that nobody can reach.
        var name: PortName? { didSet { nameObject = name?.string as NSString? } }
        /// For C, whose caller does not retain it.
        private(set) var nameObject: NSString?
        var context: CFMessagePortContext
        var invalidation: CFMessagePortInvalidationCallBack?
        /// The loop retains it, and it retains the port.
        weak var source: CFRunLoopSource?
        var queue: QueueService?
        /// Whether it starts when the callbacks have returned that run for what has served the port before it.
        var queueWaits = false
        /// What the queue's source has: a source that was replaced may still report a message.
        var queueKey: QueueKey?
        var endNotice: NoticeRequest?
        /// Threads that wait for replies of the port.
        var waits: [ObjectIdentifier: ReplyWait] = [:]
        /// Whether the client has invalidated the port, and so wants none of them.
        var isAbandoned = false
        /// Nil once the port has ended: it may retain the port.
        var callback: Callback?
        /// How many callbacks run, or are about to.
        var callouts = 0
        /// The context of a port that has ended while callbacks ran: the last one releases it.
        var lastContext: CFMessagePortContext?

        init(name: PortName?, _ context: CFMessagePortContext, _ callback: Callback?) {
            (self.name, self.context, nameObject) = (name, context, name?.string as NSString?)
            self.callback = callback
        }
    }

    /// Identifies a source on a queue.
    final class QueueKey: Sendable {}

    /// What a port had when it ended. @unchecked Sendable: moves out of the lock to one thread.
    private struct EndState: @unchecked Sendable {
        let name: PortName?
        let invalidation: CFMessagePortInvalidationCallBack?
        let context: CFMessagePortContext
        let source: CFRunLoopSource?
        let queue: QueueService?
        let endNotice: NoticeRequest?
        /// Released with the rest, without the lock.
        let callback: Callback?
    }

    /// What a call of the client needs. @unchecked Sendable: a closure of the client's, which is called as the client has
    /// arranged, on the thread of a loop.
    private struct Callout: @unchecked Sendable {
        let callback: Callback?
        let context: CFMessagePortContext
    }

    let kind: Kind  // immutable
    let state: Mutex<State>
    private let forkGuard = ForkGuard()

    init(
        _ kind: Kind, name: PortName?, _ context: CFMessagePortContext = CFMessagePortContext(), callback: Callback?
    ) {
        self.kind = kind
        state = Mutex(State(name: name, context, callback))
    }

    var isRemote: Bool { if case .remote = kind { true } else { false } }

    var localPort: MachPort? { if case .local(let port) = kind { port } else { nil } }

    /// What a message to the port is sent through.
    var right: SendRight {
        switch kind {
        case .local(let port): port.makeSendRight()
        case .remote(let right): right
        }
    }

    var name: PortName? { reading { $0.name } ?? nil }

    /// As above, retained by this object until it gets another name.
    var nameObject: NSString? { reading { $0.nameObject } ?? nil }

    var context: CFMessagePortContext { reading { $0.context } ?? CFMessagePortContext() }

    var invalidation: CFMessagePortInvalidationCallBack? { reading { $0.invalidation } ?? nil }

    /// Reads from the state; nil in a forked child: its threads have other numbers than those by which a `Mutex` knows its
    /// owner, and a thread of the parent may be that.
    private func reading<Result>(_ body: (borrowing State) -> sending Result) -> Result? {
        forkGuard.isInherited ? nil : state.withLock { body($0) }
    }

    /// Whether it was not invalidated, and this is no forked child.
    var isValid: Bool { !forkGuard.isInherited && state.withLock { $0.isValid } }

    var table: PortTable { isRemote ? ProcessObjects.current.remotes : ProcessObjects.current.locals }

    // MARK: Messages

    /// Calls the client with one message, if one waits, and sends the reply.
    ///
    /// - Parameters:
    ///   - object: the port's object.
    ///   - key: of the source on a queue; nil for that on a loop.
    func handleOne(for object: CFMessagePort, by key: QueueKey? = nil) {
        guard let port = localPort, let callout = beginCallout(key) else { return }
        defer { endCallout() }
        // CoreFoundation waits for edges, and a loop that runs inside of the callback must find the next message.
        let received = try? port.tryReceiveAfterEdge()
        guard let message = received else { return }
        let reply = callout.callback.flatMap { call($0, message, callout.context, object) }
        if message.expectsReply { send(reply, to: message) }
    }

    /// What the callback of a valid port needs: until `endCallout` the port's end does not release the info.
    private func beginCallout(_ key: QueueKey?) -> Callout? {
        if forkGuard.isInherited { return nil }
        return state.withLock { state in
            // A source may have been invalidated on its way here, and a queue set.
            if !state.isValid || state.queueKey !== key { return nil }
            state.callouts += 1
            return Callout(callback: state.callback, context: state.context)
        }
    }

    private func endCallout() {
        let (context, queue) = state.withLock { state -> (CFMessagePortContext?, QueueService?) in
            state.callouts -= 1
            if state.callouts > 0 { return (nil, nil) }
            defer { state.queueWaits = false }
            return (state.lastContext.take(), state.queueWaits ? state.queue : nil)
        }
        queue?.start()
        if let context { release(context) }
    }

    private func call(
        _ callback: Callback, _ message: MachMessage, _ context: CFMessagePortContext, _ object: CFMessagePort
    ) -> NSData? {
        var info = context.info
        if let retain = context.retain { info = UnsafeMutableRawPointer(mutating: retain(info)) }
        defer { if context.retain != nil { context.release?(info) } }
        return callback(object, message.id, NSData(copying: message.bytes), info)
    }

    private func release(_ context: CFMessagePortContext) { context.release?(context.info) }

    private func send(_ reply: NSData?, to message: MachMessage) {
        var bytes: [UInt8] = []
        if let reply, reply.length > SendRequest.byteLimit {
            logRefusal("a reply of \(reply.length) bytes is too large, and an empty one is sent instead")
        } else if let reply {
            bytes = reply.allBytes
        }
        do throws(PortError) {
            // A reply has no id: that of a request may be the id of a notice.
            try message.reply(MachMessage(id: 0, bytes: bytes))
        } catch {
            // A requester that no longer waits is no fault of this port's.
            switch error.code {
            case .peerDied, .deadName, .invalidPort, .cancelled: break
            default: logRefusal("no reply was sent: \(error)")
            }
        }
    }

    // MARK: The end

    /// Whether it is valid; a remote port whose end was not noticed yet is invalidated.
    func pollValidity(of object: CFMessagePort) -> Bool {
        if !isValid { return false }
        guard case .remote(let right) = kind, right.isDead else { return true }
        invalidate(object)
        return false
    }

    /// Ends the port, once: the name is free, then the client is called, then its info released, then the source ends.
    func invalidate(_ object: CFMessagePort) {
        guard let ended = end() else { return }
        ended.invalidation?(object, ended.context.info)
        finish(ended)
    }

    /// The object is being released: as `invalidate`, but the client is not called with it.
    func finalize() { if let ended = end() { finish(ended) } }

    /// Marks it as ended, and gives the name up.
    ///
    /// - Returns: what it had; nil when it had ended before.
    private func end() -> EndState? {
        if forkGuard.isInherited { return nil }
        let ended = state.withLock { state -> EndState? in
            if !state.isValid { return nil }
            let ended = EndState(
                name: state.name, invalidation: state.invalidation, context: state.context, source: state.source,
                queue: state.queue, endNotice: state.endNotice, callback: state.callback)
            state.isValid = false
            (state.context.info, state.invalidation, state.source) = (nil, nil, nil)
            (state.queue, state.endNotice, state.callback) = (nil, nil, nil)
            return ended
        }
        guard let ended else { return nil }
        // First: they would be called again and again for a message that nobody takes any more.
        ended.queue?.cancel()
        if let source = ended.source, let port = PortSource.of(source) {
            MainQueueService.shared.remove(port, mode: nil)
        }
        if let name = ended.name { giveUp(name) }
        return ended
    }

    /// The port has the name no longer. Another port may have it by now.
    func giveUp(_ name: PortName) {
        // A thread that wants the name waits until the table is without it.
        if let port = localPort { PortNameServer.shared.free(name, of: port.localPort) }
        table.remove(name, of: self)
    }

    private func finish(_ ended: EndState) {
        let isLast = state.withLock { state in
            if state.callouts > 0 { state.lastContext = ended.context }
            return state.callouts == 0
        }
        if isLast { release(ended.context) }
        if let source = ended.source { PortSource.end(source) }
        ended.endNotice?.cancel()
        localPort?.invalidate()
    }

    // MARK: Waits

    /// The client has invalidated the port. As `invalidate`, and ends the waits for its replies. When the receiver's port
    /// has ended they go on: a callback that runs still replies, and each other request is reported as dropped.
    func abandon(_ object: CFMessagePort) {
        invalidate(object)
        if forkGuard.isInherited { return }
        let waits = state.withLock { state in
            state.isAbandoned = true
            defer { state.waits = [:] }
            return state.waits
        }
        for wait in waits.values { wait.end() }
    }

    /// A thread is about to wait for a reply.
    ///
    /// - Returns: false when the client has invalidated the port.
    func noteWait(_ wait: ReplyWait) -> Bool {
        state.withLock { state in
            if !state.isAbandoned { state.waits[ObjectIdentifier(wait)] = wait }
            return !state.isAbandoned
        }
    }

    /// - Returns: whether `abandon` has not found it.
    func forgetWait(_ wait: ReplyWait) -> Bool {
        state.withLock { $0.waits.removeValue(forKey: ObjectIdentifier(wait)) != nil }
    }

    // MARK: Notices

    /// Sets what the end of the port calls. On a port that has ended it is called at once.
    func setInvalidation(_ callback: CFMessagePortInvalidationCallBack?, of object: CFMessagePort) {
        if forkGuard.isInherited { return callback?(object, nil) ?? () }
        let (hasEnded, mustWatch) = state.withLock { state in
            if !state.isValid { return (true, false) }
            state.invalidation = callback
            return (false, callback != nil && state.endNotice == nil)
        }
        if hasEnded { return callback?(object, nil) ?? () }
        guard mustWatch, case .remote(let right) = kind else { return }
        weak let watched = object
        let notice = EndWatch.watch(right) { if let watched { watched.body.invalidate(watched) } }
        let isUnused = state.withLock { state in
            if !state.isValid || state.endNotice != nil { return true }
            state.endNotice = notice
            return false
        }
        if isUnused { notice?.cancel() }
    }
}
