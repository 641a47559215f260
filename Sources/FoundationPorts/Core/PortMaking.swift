// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CFoundationPorts
import CoreFoundation
import Foundation
import MessagePort
import NamedPortServer
import Synchronization

extension PortBody {
    private static let type = withUnsafePointer(
        to: FPPortClass(
            finalize: { Unmanaged<PortBody>.fromOpaque($0).takeRetainedValue().finalize() },
            copyDescription: { body in
                let text = Unmanaged<PortBody>.fromOpaque(body).takeUnretainedValue().description as NSString
                return UnsafeRawPointer(Unmanaged.passRetained(text).toOpaque())
            })
    ) { fp_port_type($0) }

    static var typeID: CFTypeID { CFTypeID(type) }

    private var description: String {
        let kind = isRemote ? "remote" : "local"
        return "<CFMessagePort \(kind) \(name?.string ?? "without a name")\(isValid ? "" : ", invalid")>"
    }

    /// The object of CoreFoundation's that owns this.
    private func makeObject(_ allocator: CFAllocator?) -> CFMessagePort? {
        let owned = Unmanaged.passRetained(self)
        let pointer = allocator.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }
        guard let object = fp_port_create(Self.type, pointer, owned.toOpaque()) else {
            owned.release()
            return nil
        }
        return Unmanaged<CFMessagePort>.fromOpaque(object).takeRetainedValue()
    }

    /// A name as CoreFoundation has it: at most 128 bytes of UTF-8, cut at a character; nil with an embedded NUL, and
    /// without a character.
    static func portName(_ text: NSString) -> PortName? {
        do throws(PortError) {
            return try PortName(cut(text as String))
        } catch {
            logRefusal("\(error)")
            return nil
        }
    }

    private static func cut(_ text: String) -> String {
        var end = text.unicodeScalars.startIndex
        var count = 0
        for index in text.unicodeScalars.indices {
            count += UTF8.width(text.unicodeScalars[index])
            if count > PortName.limit { return String(text.unicodeScalars[..<end]) }
            end = text.unicodeScalars.index(after: index)
        }
        return text
    }

    /// `CFMessagePortCreateLocal`.
    ///
    /// - Returns: the port, and whether it was made by this call.
    static func makeLocal(
        _ allocator: CFAllocator?, _ name: NSString?, _ context: CFMessagePortContext, _ callback: Callback?
    ) -> (port: CFMessagePort, isNew: Bool)? {
        guard let name else {
            let made = PortBody(.local(MachPort.makeAsOnMac()), name: nil, retained(context), callback: callback)
            return made.makeOwnObject(allocator).map { ($0, true) }
        }
        guard let text = portName(name) else { return nil }
        let table = ProcessObjects.current.locals
        switch table.reserve(text) {
        case .existing(let known): return (known, false)
        case .refused:
            logRefusal("this process is about to make a port with the name \(text)")
            return nil
        case .reserved: break
        }
        let port = MachPort.makeAsOnMac()
        do throws(PortError) {
            try PortNameServer.shared.register(port, name: text.string)
        } catch {
            port.invalidate()
            table.cancel(text)
            logRefusal("\(error)")
            return nil
        }
        let body = PortBody(.local(port), name: text, retained(context), callback: callback)
        guard let object = body.makeOwnObject(allocator) else {
            table.cancel(text)
            return nil
        }
        table.commit(object, body, for: text)
        return (object, true)
    }

    /// The context with its info retained.
    private static func retained(_ context: CFMessagePortContext) -> CFMessagePortContext {
        var own = context
        if let retain = context.retain { own.info = UnsafeMutableRawPointer(mutating: retain(context.info)) }
        return own
    }

    /// The object; when there is none, nothing remains of this.
    private func makeOwnObject(_ allocator: CFAllocator?) -> CFMessagePort? {
        if let object = makeObject(allocator) { return object }
        logRefusal("there is no memory for a port")
        finalize()
        return nil
    }

    /// `CFMessagePortCreateRemote`.
    static func makeRemote(_ allocator: CFAllocator?, _ name: NSString) -> CFMessagePort? {
        guard let text = portName(name) else { return nil }
        let table = ProcessObjects.current.remotes
        let known = table.find(text).flatMap { $0.body.pollValidity(of: $0) ? $0 : nil }
        // The port of a known object may have lost the name, or another one may have it.
        guard let right = lookUp(text) else { return nil }
        if let known, known.body.right == right { return known }
        let body = PortBody(.remote(right), name: text, callback: nil)
        guard let object = body.makeObject(allocator) else {
            logRefusal("there is no memory for a port")
            return nil
        }
        return table.add(object, body, for: text)
    }

    private static func lookUp(_ name: PortName) -> SendRight? {
        do throws(PortError) {
            let right = try PortNameServer.shared.lookUp(name.string)
            return right.isDead ? nil : right
        } catch {
            // Clients ask until there is a server.
            if error.code != .nameUnknown { logRefusal("\(error)") }
            return nil
        }
    }

    /// `CFMessagePortSetName`: the port keeps its queue and its sources.
    func setName(_ name: NSString, of object: CFMessagePort) -> Bool {
        guard let port = localPort, isValid else {
            logRefusal("only a valid local port gets another name")
            return false
        }
        guard let text = Self.portName(name) else { return false }
        guard case .reserved = table.reserve(text) else {
            logRefusal("a port of this process has the name \(text)")
            return false
        }
        if state.withLock({ $0.queue != nil }) {
            table.cancel(text)
            logRefusal("a port that a queue serves gets no other name")
            return false
        }
        do throws(PortError) {
            try PortNameServer.shared.register(port, name: text.string)
        } catch {
            table.cancel(text)
            logRefusal("\(error)")
            return false
        }
        // The table has it before another call can find that it is the port's name, and give it up.
        table.commit(object, self, for: text)
        let old = state.withLock { state -> PortName?? in
            if !state.isValid { return nil }
            defer { state.name = text }
            return .some(state.name)
        }
        guard let old else {
            giveUp(text)
            logRefusal("the port has ended: it gets no other name")
            return false
        }
        if let old { giveUp(old) }
        return true
    }

    /// `CFMessagePortCreateRunLoopSource`.
    func makeSource(order: CFIndex, for object: CFMessagePort) -> CFRunLoopSource? {
        // The loop retains the port's object by its source.
        guard let source = portSource({ object.body.handleOne(for: object) }) else { return nil }
        guard let made = source.makeRunLoopSource(order: order) else {
            logRefusal("there is no memory for a run-loop source")
            return nil
        }
        let used = state.withLock { state -> CFRunLoopSource? in
            if !state.isValid || state.queue != nil { return nil }
            if let known = state.source, CFRunLoopSourceIsValid(known) { return known }
            state.source = made
            return made
        }
        if used == nil {
            logRefusal("\(isValid ? "a queue serves the port" : "the port has ended"): it gets no run-loop source")
        }
        if used !== made { CFRunLoopSourceInvalidate(made) }
        return used
    }

    /// What serves the port; nil, with a line on standard error, for a remote or invalid one.
    private func portSource(_ handleOne: @escaping @Sendable () -> Void) -> PortSource? {
        guard let port = localPort, isValid else {
            logRefusal("only a valid local port has a run-loop source or a queue")
            return nil
        }
        do throws(PortError) {
            let doorbell = try port.doorbell()
            return PortSource(doorbell.descriptor) { withExtendedLifetime(doorbell, handleOne) }
        } catch {
            logRefusal("\(error)")
            return nil
        }
    }

    /// `CFMessagePortSetDispatchQueue`.
    func setQueue(for object: CFMessagePort, _ makeService: ((PortSource) -> QueueService?)?) {
        guard let makeService else {
            guard isValid, !isRemote else { return logRefusal("only a valid local port has a queue") }
            let old = state.withLock { state in
                state.queueKey = nil
                return state.queue.take()
            }
            return old?.cancel() ?? ()
        }
        // A queue does not retain the port: its last release ends it.
        weak let served = object
        let key = QueueKey()
        let source = portSource { if let served { served.body.handleOne(for: served, by: key) } }
        guard let source else { return }
        guard let service = makeService(source) else { return logRefusal("there is no memory for a queue's source") }
        // The end of the port, and another call, may find the service, and cancel it before it starts.
        let (old, waits, refusal) = state.withLock { state -> (QueueService?, Bool, String?) in
            if !state.isValid { return (service, false, "the port has ended: no queue serves it") }
            if let source = state.source, CFRunLoopSourceIsValid(source) {
                return (service, false, "a run-loop source serves the port: no queue does")
            }
            defer { (state.queue, state.queueKey) = (service, key) }
            // One callback at a time, also when one runs for what has served the port before.
            state.queueWaits = state.callouts > 0
            return (state.queue, state.queueWaits, nil)
        }
        old?.cancel()
        if let refusal { return logRefusal(refusal) }
        if !waits { service.start() }
    }
}

extension MachPort {
    /// How many messages wait at a port: the default of Mach's ports.
    private static let queueLimitOnMac = 5

    /// A port with the limits of one of a Mac: it accepts what CFMessagePort sends.
    static func makeAsOnMac() -> MachPort {
        let port = MachPort(queueLimit: queueLimitOnMac)
        var limits = PeerLimits()
        limits.messageBytes = MessageLimits.payload
        limits.queuedBytes = MessageLimits.payload
        port.setPeerLimits(limits)
        return port
    }
}
