// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The functions of CFMessagePort.h as C calls them. CoreFoundation on Linux declares them, and has none of them.

import CoreFoundation
import Foundation
import Synchronization

private typealias CCallback =
    @convention(c) (
        UnsafeRawPointer?, Int32, UnsafeRawPointer?, UnsafeMutableRawPointer?
    ) -> UnsafeRawPointer?

private func port(_ pointer: UnsafeRawPointer?, _ caller: StaticString = #function) -> CFMessagePort? {
    guard let pointer else {
        logRefusal("\(caller) was given no port")
        return nil
    }
    return Unmanaged<CFMessagePort>.fromOpaque(pointer).takeUnretainedValue()
}

private func object<Object: AnyObject>(_ pointer: UnsafeRawPointer?, _: Object.Type) -> Object? {
    pointer.map { Unmanaged<Object>.fromOpaque($0).takeUnretainedValue() }
}

/// A result that the caller owns.
private func retained(_ object: AnyObject?) -> UnsafeRawPointer? {
    object.map { UnsafeRawPointer(Unmanaged.passRetained($0).toOpaque()) }
}

@_cdecl("CFMessagePortGetTypeID")
func cMessagePortGetTypeID() -> UInt { UInt(PortBody.typeID) }

@_cdecl("CFMessagePortCreateLocal")
func cMessagePortCreateLocal(
    _ allocator: UnsafeRawPointer?, _ name: UnsafeRawPointer?, _ callout: UnsafeRawPointer?,
    _ context: UnsafeRawPointer?, _ shouldFreeInfo: UnsafeMutablePointer<UInt8>?
) -> UnsafeRawPointer? {
    shouldFreeInfo?.pointee = 1
    let callback = callout.map { callout -> PortBody.Callback in
        let function = unsafeBitCast(callout, to: CCallback.self)
        return { port, id, data, info in
            withExtendedLifetime((port, data)) {
                let reply = function(
                    Unmanaged.passUnretained(port).toOpaque(), id, Unmanaged.passUnretained(data).toOpaque(), info)
                return reply.map { Unmanaged<NSData>.fromOpaque($0).takeRetainedValue() }
            }
        }
    }
    let given = context?.assumingMemoryBound(to: CFMessagePortContext.self).pointee ?? CFMessagePortContext()
    let made = PortBody.makeLocal(
        object(allocator, CFAllocator.self), object(name, NSString.self), given, callback)
    guard let made else { return nil }
    shouldFreeInfo?.pointee = made.isNew ? 0 : 1
    return retained(made.port)
}

@_cdecl("CFMessagePortCreateRemote")
func cMessagePortCreateRemote(_ allocator: UnsafeRawPointer?, _ name: UnsafeRawPointer?) -> UnsafeRawPointer? {
    guard let name = object(name, NSString.self) else {
        logRefusal("a remote port needs a name")
        return nil
    }
    return retained(PortBody.makeRemote(object(allocator, CFAllocator.self), name))
}

@_cdecl("CFMessagePortIsRemote")
func cMessagePortIsRemote(_ ms: UnsafeRawPointer?) -> UInt8 { port(ms)?.body.isRemote == true ? 1 : 0 }

@_cdecl("CFMessagePortGetName")
func cMessagePortGetName(_ ms: UnsafeRawPointer?) -> UnsafeRawPointer? {
    guard let body = port(ms)?.body, let name = body.nameObject else { return nil }
    return UnsafeRawPointer(Unmanaged.passUnretained(name).toOpaque())
}

@_cdecl("CFMessagePortSetName")
func cMessagePortSetName(_ ms: UnsafeRawPointer?, _ name: UnsafeRawPointer?) -> UInt8 {
    guard let port = port(ms) else { return 0 }
    guard let name = object(name, NSString.self) else {
        logRefusal("a port's other name is NULL")
        return 0
    }
    return port.body.setName(name, of: port) ? 1 : 0
}

@_cdecl("CFMessagePortGetContext")
func cMessagePortGetContext(_ ms: UnsafeRawPointer?, _ context: UnsafeMutableRawPointer?) {
    guard let port = port(ms), let context else { return }
    context.assumingMemoryBound(to: CFMessagePortContext.self).pointee = port.body.context
}

@_cdecl("CFMessagePortInvalidate")
func cMessagePortInvalidate(_ ms: UnsafeRawPointer?) {
    // NULL is allowed.
    if ms != nil, let port = port(ms) { port.body.abandon(port) }
}

@_cdecl("CFMessagePortIsValid")
func cMessagePortIsValid(_ ms: UnsafeRawPointer?) -> UInt8 {
    port(ms).map { $0.body.pollValidity(of: $0) } == true ? 1 : 0
}

@_cdecl("CFMessagePortGetInvalidationCallBack")
func cMessagePortGetInvalidationCallBack(_ ms: UnsafeRawPointer?) -> UnsafeRawPointer? {
    let callback = port(ms)?.body.invalidation
    return callback.flatMap { unsafeBitCast($0, to: UnsafeRawPointer?.self) }
}

@_cdecl("CFMessagePortSetInvalidationCallBack")
func cMessagePortSetInvalidationCallBack(_ ms: UnsafeRawPointer?, _ callout: UnsafeRawPointer?) {
    guard let port = port(ms) else { return }
    port.body.setInvalidation(unsafeBitCast(callout, to: CFMessagePortInvalidationCallBack?.self), of: port)
}

@_cdecl("CFMessagePortSendRequest")
func cMessagePortSendRequest(
    _ remote: UnsafeRawPointer?, _ id: Int32, _ data: UnsafeRawPointer?, _ sendTimeout: Double,
    _ receiveTimeout: Double, _ replyMode: UnsafeRawPointer?,
    _ returnData: UnsafeMutablePointer<UnsafeRawPointer?>?
) -> Int32 {
    guard let port = port(remote) else { return kCFMessagePortIsInvalid }
    let request = SendRequest(
        id: id, data: object(data, NSData.self), sendTimeout: sendTimeout, receiveTimeout: receiveTimeout,
        replyMode: object(replyMode, CoreFoundation.CFString.self))
    if replyMode != nil { returnData?.pointee = nil }
    let (status, reply) = request.send(to: port)
    if let reply, let returnData { returnData.pointee = retained(reply) }
    return status
}

@_cdecl("CFMessagePortCreateRunLoopSource")
func cMessagePortCreateRunLoopSource(
    _ allocator: UnsafeRawPointer?, _ local: UnsafeRawPointer?, _ order: Int
) -> UnsafeRawPointer? {
    guard let port = port(local) else { return nil }
    return retained(port.body.makeSource(order: order, for: port))
}

@_cdecl("CFMessagePortSetDispatchQueue")
func cMessagePortSetDispatchQueue(_ ms: UnsafeRawPointer?, _ queue: UnsafeMutableRawPointer?) {
    guard let port = port(ms) else { return }
    guard let queue else { return port.body.setQueue(for: port, nil) }
    port.body.setQueue(for: port) { QueueService($0, onDispatchQueue: queue) }
}
