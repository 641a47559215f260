// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import Foundation
import MessagePort

/// What a delegate of an ``NSMachPort`` is: `handle(_:)` of `PortDelegate` is called. Raw Mach messages do not exist here.
public protocol NSMachPortDelegate: PortDelegate {}

/// A port of Foundation's run loops: `NSMachPort`, over this package's ports.
///
/// A port that this process has made receives; one that came in a message, or from a name server, is sent to. There is one
/// object for each port as long as it is retained; two objects for the same port are equal. Five messages wait at a
/// port. It may be used on any thread. In a forked child, the ports of the parent are invalid.
open class NSMachPort: Port, @unchecked Sendable {
    // @unchecked Sendable: it has only the core, which is Sendable. Port has no state.

    /// Which rights `deinit` gives up. Rights here are given up by their objects: it changes nothing.
    public struct Options: OptionSet, Sendable {
        /// The set as a number.
        public let rawValue: UInt
        /// A set from a number.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// `NSMachPortDeallocateSendRight`.
        public static let deallocateSendRight = Options(rawValue: 1)
        /// `NSMachPortDeallocateReceiveRight`.
        public static let deallocateReceiveRight = Options(rawValue: 2)
    }

    let core: MachPortCore  // immutable

    /// A port that receives, once a run loop serves it: see `RunLoop.add(_:forMode:)`.
    public override init() {
        core = MachPortCore.makeReceiver()
        super.init()
        core.add(self)
    }

    /// The port of this process with a number; without one, a port that is invalid. No later port gets its number while an
    /// object has it.
    ///
    /// When there is an object for the port, this is a second one: they share the delegate and the end.
    public init(machPort: UInt32) {
        core = PortObjects.shared.core(numbered: machPort)
        super.init()
        core.add(self)
    }

    /// As ``init(machPort:)``. The options change nothing.
    public init(machPort: UInt32, options: Options = []) {
        core = PortObjects.shared.core(numbered: machPort)
        super.init()
        core.add(self)
    }

    /// The object for the port of this process with a number; without one, a port that is invalid.
    open class func port(withMachPort machPort: UInt32) -> Port {
        PortObjects.shared.core(numbered: machPort).makeObject()
    }

    /// As ``port(withMachPort:)``. The options change nothing.
    open class func port(withMachPort machPort: UInt32, options: Options = []) -> Port {
        port(withMachPort: machPort)
    }

    deinit { core.remove(ObjectIdentifier(self)) }

    /// A number that no other port of this process has: not portable, and no right by itself.
    open var machPort: UInt32 { core.number }

    // MARK: Identity

    /// Equal objects have equal hashes, also after they were invalidated.
    open override var hash: Int { core.right?.hashValue ?? Int(core.number) }

    /// Whether the other object is for the same port.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSMachPort else { return false }
        if other.core === core { return true }
        guard let right = core.right, let theirs = other.core.right else { return false }
        return right == theirs
    }

    /// The class, the number, and whether it is invalid.
    open override var description: String {
        "<\(type(of: self)) \(core.number)\(core.isMarkedValid ? "" : ", invalid")>"
    }

    // MARK: Validity

    /// Whether it can be used. A port of another process that has ended is invalidated by this.
    open override var isValid: Bool {
        if !core.isMarkedValid { return false }
        if !core.isFoundDead { return true }
        invalidate()
        return false
    }

    /// Ends it, once, and posts `Port.didBecomeInvalidNotification` on this thread. A port that receives is dead for its
    /// senders then, and its name is free.
    open override func invalidate() { core.invalidate() }

    // MARK: Delegate

    /// Sets what is called with each message, on the thread of the run loop. It is not retained.
    open override func setDelegate(_ anObject: (any PortDelegate)?) { core.delegate = anObject }
    /// What is called with each message. Without one, messages are dropped.
    open override func delegate() -> (any PortDelegate)? { core.delegate }

    // MARK: Run loops

    /// Called by `RunLoop.add(_:forMode:)`.
    open override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        schedule(in: runLoop, forMode: mode, storedAs: RunLoop.storageLabel)
    }

    /// As above, with the name that the loop's storage has in Foundation: a test gives another one.
    package func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode, storedAs label: String) {
        runLoop.onCoreFoundationLoop(mode, storedAs: label) { [core] loop in
            guard let source = core.makeSource() else { return }
            CFRunLoopAddSource(loop, source, mode.coreFoundationMode)
            // A loop whose mode was empty waits without the port.
            CFRunLoopWakeUp(loop)
        }
    }

    /// Called by `RunLoop.remove(_:forMode:)`.
    open override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        remove(from: runLoop, forMode: mode, storedAs: RunLoop.storageLabel)
    }

    /// As above, with the name that the loop's storage has in Foundation: a test gives another one.
    package func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode, storedAs label: String) {
        runLoop.onCoreFoundationLoop(mode, storedAs: label) { [core] loop in
            if let source = core.source { CFRunLoopRemoveSource(loop, source, mode.coreFoundationMode) }
        }
    }

    // MARK: Messages

    /// Sends a message with the number 0. See `send(before:msgid:components:from:reserved:)`.
    @discardableResult
    open override func send(
        before limitDate: Date, components: NSMutableArray?, from receivePort: Port?,
        reserved headerSpaceReserved: Int
    ) -> Bool {
        send(before: limitDate, msgid: 0, components: components, from: receivePort, reserved: headerSpaceReserved)
    }

    /// Sends a message. Blocks while five messages wait at the port; the run loop does not run meanwhile.
    ///
    /// - Parameters:
    ///   - limitDate: how long to wait for room; with a date that is past, it is sent if there is room now.
    ///   - msgID: a number for the receiver, of which it gets the lower 32 bits.
    ///   - components: objects that are `NSData` (or `Data`), or ports of this library.
    ///   - receivePort: where replies arrive, a valid port; nil for no replies.
    ///   - headerSpaceReserved: not used.
    /// - Returns: false when it was not sent: no room until the date, the port is gone, or an argument is not as above. The
    ///   reason is on standard error, but for a date that has passed, and a reply for which nothing waits any more.
    @discardableResult
    open override func send(
        before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
        reserved headerSpaceReserved: Int
    ) -> Bool {
        guard core.isMarkedValid else { return refuse("the port is invalid") }
        let message: MachMessage
        do throws(MessageError) {
            message = try MachMessage(
                id: msgID, components: components.map { Array($0) } ?? [], replyPort: receivePort)
        } catch {
            return refuse("\(error)")
        }
        let limit = limitDate.timeIntervalSinceNow
        let error = core.send(message, within: limit > 0 ? .replyLimit(cfSeconds: limit) : .zero)
        // It may be a port in the message that is gone, not this one. A reply is sent once.
        if core.isFoundDead { invalidate() }
        guard let error else { return true }
        return error.code == .sendTimedOut || error.code == .cancelled ? false : refuse("\(error)")
    }

    private func refuse(_ reason: String) -> Bool {
        logRefusal("a message was not sent: \(reason)", by: "NSMachPort")
        return false
    }
}

/// A port of Foundation's for messages: here the same as ``NSMachPort``.
open class MessagePort: NSMachPort, @unchecked Sendable {}

/// Objective-C's name of ``MessagePort``.
public typealias NSMessagePort = MessagePort
