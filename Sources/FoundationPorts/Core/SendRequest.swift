// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import MessagePort

/// `CFMessagePortSendRequest`.
struct SendRequest {
    /// CoreFoundation's limit of a message, 0x60000000, less the head that the bytes have on their way to another
    /// process: the limit within a process is the same.
    static let byteLimit = MessageLimits.payload - 8

    let id: Int32
    let data: NSData?
    let sendTimeout: CFTimeInterval
    let receiveTimeout: CFTimeInterval
    /// Nil for a message that gets no reply.
    let replyMode: CoreFoundation.CFString?

    /// - Returns: the status, and the reply's data, if there is one.
    func send(to object: CFMessagePort) -> (status: Int32, reply: NSData?) {
        let body = object.body
        if let data, data.length > Self.byteLimit {
            logRefusal("\(data.length) bytes are too large for a message: the most are \(Self.byteLimit)")
            return (kCFMessagePortTransportError, nil)
        }
        if !body.isValid { return (kCFMessagePortIsInvalid, nil) }
        let message = MachMessage(id: id, bytes: data?.allBytes ?? [])
        guard let replyMode else { return (send(message, body, object), nil) }
        return request(message, in: replyMode, body, object)
    }

    private func send(_ message: consuming MachMessage, _ body: PortBody, _ object: CFMessagePort) -> Int32 {
        do throws(PortError) {
            try body.right.send(message, within: .sendLimit(cfSeconds: sendTimeout))
            return kCFMessagePortSuccess
        } catch {
            return status(of: error, body, object)
        }
    }

    /// Returns without any reference to the reply right: when the receiver drops its own, the wait ends.
    private func send(
        _ message: consuming MachMessage, expectingReplyAt wait: ReplyWait, _ body: PortBody, _ object: CFMessagePort
    ) -> Int32 {
        var request = message
        request.setReplyRight(wait.makeReplyRight())
        return send(request, body, object)
    }

    private func request(
        _ message: consuming MachMessage, in mode: CoreFoundation.CFString, _ body: PortBody, _ object: CFMessagePort
    ) -> (Int32, NSData?) {
        let wait: ReplyWait
        do throws(PortError) {
            wait = try ReplyWait.make()
        } catch {
            return (status(of: error, body, object), nil)
        }
        let sent = send(message, expectingReplyAt: wait, body, object)
        if sent != kCFMessagePortSuccess {
            // The right may have gone with the message.
            wait.drop()
            return (sent, nil)
        }
        let outcome = wait.run(in: mode, within: receiveTimeout) { body.noteWait(wait) }
        // One that the client's invalidation has found may be ended at any later time.
        let isFree = body.forgetWait(wait)
        if isFree, let outcome, outcome.isLast { wait.recycle() } else { wait.drop() }
        switch outcome {
        case .reply(let reply):
            return (kCFMessagePortSuccess, NSData(copying: reply.bytes))
        case .dropped:
            if !body.pollValidity(of: object) { return (kCFMessagePortBecameInvalidError, nil) }
            logRefusal("the receiver has dropped the request \(id) without a reply")
            return (kCFMessagePortTransportError, nil)
        case .failed(let error):
            logRefusal("the reply was not received: \(error)")
            return (kCFMessagePortTransportError, nil)
        case nil:
            let isValid = body.pollValidity(of: object)
            return (isValid ? kCFMessagePortReceiveTimeout : kCFMessagePortBecameInvalidError, nil)
        }
    }

    private func status(of error: PortError, _ body: PortBody, _ object: CFMessagePort) -> Int32 {
        switch error.code {
        case .sendTimedOut: return kCFMessagePortSendTimeout
        case .invalidPort, .deadName, .peerDied, .forkedProcess:
            body.invalidate(object)
            return kCFMessagePortIsInvalid
        default:
            logRefusal("\(error)")
            return kCFMessagePortTransportError
        }
    }
}
