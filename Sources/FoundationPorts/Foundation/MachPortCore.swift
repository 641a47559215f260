// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import MessagePort
import Synchronization

extension MachMessage {
    /// The requester is notified that there is no reply.
    fileprivate func dropReply() { _ = takeReplyRight() }
}

/// A port of Foundation's, which all its objects share: nearly always there is one, but `init(machPort:)` must make
/// another. The objects retain it, and it retains none; with the last of them a port that receives ends.
final class MachPortCore: Sendable {
    // A class: Swift 6.3.1 releases a weak reference in a structure in a collection once too often.
    final class WeakPort {
        weak var object: NSMachPort?
        let identifier: ObjectIdentifier

        init(_ object: NSMachPort) {
            self.object = object
            identifier = ObjectIdentifier(object)
        }
    }

    // @unchecked Sendable: used under the lock.
    struct State: @unchecked Sendable {
        var isValid: Bool
        var objects: [WeakPort] = []
        weak var delegate: (any PortDelegate)?
        /// The loop retains it.
        weak var source: CFRunLoopSource?
        var endNotice: NoticeRequest?
    }

    /// The port, when it is one that this process has made.
    let receiver: MachPort?  // immutable
    /// A right to the port; nil for a reply, or for none.
    let right: SendRight?  // immutable
    /// The message, when the port is where its one reply goes.
    private let request: MachMessage?  // immutable
    let number: UInt32  // immutable
    let state: Mutex<State>
    private let forkGuard = ForkGuard()

    private init(_ receiver: MachPort?, _ right: SendRight?, _ request: MachMessage?, number: UInt32) {
        (self.receiver, self.right, self.request, self.number) = (receiver, right, request, number)
        state = Mutex(State(isValid: right != nil || request != nil))
    }

    /// A new port that receives.
    convenience init(receiver: MachPort, number: UInt32) {
        self.init(receiver, receiver.makeSendRight(), nil, number: number)
    }

    /// A port that is sent to.
    convenience init(right: SendRight, number: UInt32) { self.init(nil, right, nil, number: number) }

    /// Where the one reply to a message goes.
    convenience init(request: MachMessage, number: UInt32) { self.init(nil, nil, request, number: number) }

    /// No port has the number that was asked for.
    convenience init(unknownNumber: UInt32) { self.init(nil, nil, nil, number: unknownNumber) }

    /// A new port that receives, with a new number.
    static func makeReceiver() -> MachPortCore {
        let port = MachPort.makeAsOnMac()
        return PortObjects.shared.add { MachPortCore(receiver: port, number: $0) }
    }

    deinit {
        // In a forked child, locks may be owned by threads that do not exist there.
        if forkGuard.isInherited { return }
        PortObjects.shared.remove(self)
        end()
    }

    /// Uses the state; nil in a forked child: see `PortBody.reading`.
    @discardableResult
    private func withState<Result>(_ body: (inout sending State) -> sending Result) -> Result? {
        forkGuard.isInherited ? nil : state.withLock { body(&$0) }
    }

    // MARK: Objects

    /// The oldest of its objects.
    var object: NSMachPort? {
        let object = withState { state -> NSMachPort? in
            // The one object that is retained here is returned: none may be released under the lock.
            for entry in state.objects { if let object = entry.object { return object } }
            return nil
        }
        return object ?? nil
    }

    func add(_ object: NSMachPort) {
        withState { $0.objects.append(WeakPort(object)) }
    }

    /// An object is being released.
    func remove(_ identifier: ObjectIdentifier) {
        if forkGuard.isInherited { return }
        state.withLock { $0.objects.removeAll { $0.identifier == identifier } }
    }

    /// Its object; one is made when none is alive.
    func makeObject() -> NSMachPort {
        if let object { return object }
        let made = MessagePort(machPort: number)
        // Another thread may have made one since, which is older then.
        return object ?? made
    }

    // MARK: Validity

    var isMarkedValid: Bool { !forkGuard.isInherited && state.withLock { $0.isValid } }

    /// Whether the port is known to be gone, though it was not invalidated.
    var isFoundDead: Bool {
        if receiver != nil { return false }
        if let request { return !request.expectsReply }
        return right?.isDead ?? false
    }

    /// Ends the port, once, and posts the notification for each of its objects.
    func invalidate() {
        guard end() else { return }
        let entries = state.withLock { $0.objects }
        for entry in entries {
            guard let object = entry.object else { continue }
            NotificationCenter.default.post(name: Port.didBecomeInvalidNotification, object: object)
        }
    }

    /// - Returns: whether this call has ended it.
    @discardableResult
    private func end() -> Bool {
        if forkGuard.isInherited { return false }
        let ended = state.withLock { state -> (source: CFRunLoopSource?, notice: NoticeRequest?)? in
            if !state.isValid { return nil }
            state.isValid = false
            defer { (state.source, state.endNotice) = (nil, nil) }
            return (state.source, state.endNotice)
        }
        guard let ended else { return false }
        PortObjects.shared.forgetRight(of: self)
        if let source = ended.source { PortSource.end(source) }
        ended.notice?.cancel()
        receiver?.invalidate()
        request?.dropReply()
        return true
    }

    /// Invalidates it, on the main queue, when the process of the port has ended.
    func watchEnd() {
        guard receiver == nil, let right else { return }
        let notice = EndWatch.watch(right) { [weak self] in
            guard let self else { return }
            if let object { object.invalidate() } else { invalidate() }
        }
        let isUnused = state.withLock { state in
            if !state.isValid { return true }
            state.endNotice = notice
            return false
        }
        if isUnused { notice?.cancel() }
    }

    // MARK: Messages

    var delegate: (any PortDelegate)? {
        get { withState { $0.delegate } ?? nil }
        set { withState { $0.delegate = newValue } }
    }

    /// The source that serves the port; nil when it does not receive.
    func makeSource() -> CFRunLoopSource? {
        guard let port = receiver, isMarkedValid else { return nil }
        if let source = state.withLock({ $0.source }) { return source }
        do throws(PortError) {
            // The run loop retains the object of a scheduled port: Foundation has a table of them.
            // The source has the doorbell as long as a loop or the main queue uses the descriptor.
            let doorbell = try port.doorbell()
            let portSource = PortSource(doorbell.descriptor) { [weak self] in
                withExtendedLifetime(doorbell) { self?.handleOne() }
            }
            guard let made = portSource.makeRunLoopSource(order: 0) else { return nil }
            return state.withLock { state in
                if !state.isValid { return nil }
                if let other = state.source { return other }
                state.source = made
                return made
            }
        } catch {
            logRefusal("\(error)", by: "NSMachPort")
            return nil
        }
    }

    var source: CFRunLoopSource? { withState { $0.source } ?? nil }

    /// Calls the delegate with one message, if one waits.
    private func handleOne() {
        guard let port = receiver, isMarkedValid, let object else { return }
        // CoreFoundation waits for edges, and a loop that runs inside of the delegate must find the next message.
        let received = try? port.tryReceiveAfterEdge()
        // Asked after the receipt: what arrived between the end of the port and that of its queue is dropped.
        guard let message = received, isMarkedValid else { return }
        object.delegate()?.handle(PortMessage(message, receivedBy: object))
    }

    /// Sends a message, or the reply.
    ///
    /// - Returns: why it was not sent.
    func send(_ message: MachMessage, within limit: Duration) -> PortError? {
        do throws(PortError) {
            if let request {
                try request.reply(message, within: limit)
            } else if let right {
                try right.send(message, within: limit)
            } else {
                throw PortError(.invalidPort)
            }
            return nil
        } catch {
            return error
        }
    }
}
