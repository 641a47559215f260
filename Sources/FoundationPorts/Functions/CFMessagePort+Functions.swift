// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The functions of CFMessagePort.h whose types differ on Linux, as Apple's Swift interface spells them. The others are
// CoreFoundation's declarations of the functions in `CInterface.swift`.
//
// A file that imports CoreFoundation, too, sees its function beside this one. Where a call fits both, and they do the same,
// CoreFoundation's is called: this one is `@_disfavoredOverload`. Where they differ in the result, a second function whose
// arguments are not optional fits better than both.

public import CoreFoundation
public import Dispatch
public import Foundation

/// Makes a local port with a name, which is free again when the port is invalidated; or gets the one that this process has
/// under the name already: then `callout` and `context` are not used.
///
/// The port receives once it has a run-loop source (`CFMessagePortCreateRunLoopSource`) or a queue
/// (``CFMessagePortSetDispatchQueue(_:_:)``); five messages wait until then.
///
/// - Parameters:
///   - allocator: the allocator of the object.
///   - name: 1 to 128 bytes of UTF-8, any but NUL; what is longer is cut. Nil for a port that nobody can reach.
///   - callout: called with each message.
///   - context: whose `info` `callout` gets; retained by its `retain` now, and released when the port ends.
///   - shouldFreeInfo: set to false when a port was made, otherwise to true.
/// - Returns: the port; nil when the name is another process's, or is no name. Why is on standard error.
@discardableResult
public func CFMessagePortCreateLocal(
    _ allocator: CFAllocator!, _ name: CFString!,
    _ callout: ((CFMessagePort?, Int32, CFData?, UnsafeMutableRawPointer?) -> Unmanaged<CFData>?)!,
    _ context: UnsafeMutablePointer<CFMessagePortContext>!, _ shouldFreeInfo: UnsafeMutablePointer<DarwinBoolean>!
) -> CFMessagePort! {
    shouldFreeInfo?.pointee = true
    let callback: PortBody.Callback? = callout.map { callout in
        { port, id, data, info in callout(port, id, data, info)?.takeRetainedValue() }
    }
    guard let made = PortBody.makeLocal(allocator, name, context?.pointee ?? CFMessagePortContext(), callback) else {
        return nil
    }
    shouldFreeInfo?.pointee = DarwinBoolean(!made.isNew)
    return made.port
}

/// A port with a name in this or another process: one object for each name as long as it is valid.
///
/// - Returns: nil when no port has the name now. It waits for none.
@discardableResult @_disfavoredOverload
public func CFMessagePortCreateRemote(_ allocator: CFAllocator!, _ name: CFString!) -> CFMessagePort! {
    guard let name else {
        logRefusal("a remote port needs a name")
        return nil
    }
    return PortBody.makeRemote(allocator, name)
}

/// The port's name; nil for a local port without one.
@discardableResult @_disfavoredOverload
public func CFMessagePortGetName(_ ms: CFMessagePort!) -> CFString! {
    guard let ms = checked(ms) else { return nil }
    return ms.body.nameObject
}

/// The port's name; nil for a local port without one.
@discardableResult
public func CFMessagePortGetName(_ ms: CFMessagePort) -> CFString! { ms.body.nameObject }

/// Gives a local port another name. Unlike Apple's, it keeps its queue and its sources.
///
/// - Returns: false when a port of this or another process has the name, or a queue serves the port.
@discardableResult @_disfavoredOverload
public func CFMessagePortSetName(_ ms: CFMessagePort!, _ newName: CFString!) -> Bool {
    guard let ms = checked(ms) else { return false }
    guard let newName else {
        logRefusal("a port's other name is nil")
        return false
    }
    return ms.body.setName(newName, of: ms)
}

/// Sends a message, and waits for the reply, if `replyMode` is not nil.
///
/// - Parameters:
///   - remote: the port; it may be a local one.
///   - msgid: a number for the receiver.
///   - data: nil is sent as no bytes. The most are 0x5FFFFFF8 bytes, 8 fewer than on Apple's systems: more give
///     `kCFMessagePortTransportError`.
///   - sendTimeout: how long to wait for room at the port, in seconds; the run loop does not run meanwhile. Less than a
///     millisecond is no wait, ten days or more no limit.
///   - rcvTimeout: how long to wait for the reply, in seconds. The current run loop runs in the mode meanwhile.
///   - replyMode: nil to send only: then neither `rcvTimeout` nor `returnData` is used.
///   - returnData: set to the reply's data, which the caller releases; empty data for a nil reply.
/// - Returns: `kCFMessagePortSuccess` or why not.
@discardableResult @_disfavoredOverload
public func CFMessagePortSendRequest(
    _ remote: CFMessagePort!, _ msgid: Int32, _ data: CFData!, _ sendTimeout: CFTimeInterval,
    _ rcvTimeout: CFTimeInterval, _ replyMode: CFString!,
    _ returnData: UnsafeMutablePointer<Unmanaged<CFData>?>!
) -> Int32 {
    guard let remote = checked(remote) else { return kCFMessagePortIsInvalid }
    let request = SendRequest(
        id: msgid, data: data, sendTimeout: sendTimeout, receiveTimeout: rcvTimeout,
        replyMode: replyMode.map { CFRunLoopMode(rawValue: $0).asCoreFoundation })
    if replyMode != nil { returnData?.pointee = nil }
    let (status, reply) = request.send(to: remote)
    if let reply, let returnData { returnData.pointee = .passRetained(reply) }
    return status
}

/// Has a queue serve a local port, one message after the other in their order; nil ends that. It serves the port when a
/// callback has returned that runs for the queue or the source before it.
///
/// A port has a queue or a run-loop source, not both: the second is refused, with a line on standard error.
public func CFMessagePortSetDispatchQueue(_ ms: CFMessagePort!, _ queue: DispatchQueue!) {
    guard let ms = checked(ms) else { return }
    guard let queue else { return ms.body.setQueue(for: ms, nil) }
    ms.body.setQueue(for: ms) { QueueService($0, on: queue) }
}

/// The port; without one a line on standard error, where CoreFoundation would end the program.
private func checked(_ port: CFMessagePort?, _ caller: StaticString = #function) -> CFMessagePort? {
    if port == nil { logRefusal("\(caller) was given no port") }
    return port
}
