// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import Foundation
import MessagePort

extension PortMessage {
    /// Apple's spelling.
    ///
    /// - Parameters:
    ///   - sendPort: the port to which the message goes.
    ///   - receivePort: the port at which replies arrive; nil for no replies.
    ///   - components: data and ports.
    public convenience init(send sendPort: Port?, receive receivePort: Port?, components: [Any]?) {
        self.init(
            sendPort: sendPort, receivePort: receivePort,
            components: components.map { $0.map { ($0 as? Data).map { $0 as NSData } ?? $0 as AnyObject } })
    }

    /// A message that has come: `sendPort` is where replies go, `receivePort` where it has arrived.
    convenience init(_ message: MachMessage, receivedBy port: NSMachPort) {
        let components = message.components.compactMap { component -> AnyObject? in
            switch component {
            case .bytes(let bytes): NSData(copying: bytes)
            case .right(let right): PortObjects.shared.object(for: right)
            default: nil
            }
        }
        self.init(
            sendPort: message.replyPort.map { PortObjects.shared.object(for: $0) }
                ?? PortObjects.shared.object(forReplyTo: message),
            receivePort: port, components: components)
        msgid = UInt32(bitPattern: message.id)
    }
}

/// Why a message of Foundation's is not sent.
struct MessageError: Error, CustomStringConvertible {
    let description: String
}

extension MachMessage {
    /// A message of Foundation's.
    ///
    /// - Throws: when a component is neither data nor a port that a message carries, or replies arrive at no such port.
    init(id: Int, components: [Any], replyPort: Port?) throws(MessageError) {
        var parts: [Component] = []
        for (index, component) in components.enumerated() {
            if let data = component as? NSData {
                parts.append(.bytes(data.allBytes))
            } else if let data = component as? Data {
                parts.append(.bytes([UInt8](data)))
            } else if let right = (component as? NSMachPort)?.core.right {
                parts.append(.right(right))
            } else {
                let reason =
                    component is NSMachPort
                    ? "an invalid port, or one that sends only a reply" : "neither data nor a port of this library"
                throw MessageError(description: "component \(index), a \(type(of: component)), is \(reason)")
            }
        }
        var reply: SendRight?
        if let replyPort {
            guard let core = (replyPort as? NSMachPort)?.core else {
                throw MessageError(description: "no reply arrives at a \(type(of: replyPort)) of another library")
            }
            guard core.isMarkedValid, let right = core.right else {
                throw MessageError(description: "no reply arrives at an invalid port, or one that sends only a reply")
            }
            reply = right
        }
        self.init(id: Int32(truncatingIfNeeded: id), components: parts, replyPort: reply)
    }
}
