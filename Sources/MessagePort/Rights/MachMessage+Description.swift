// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension MachMessage: CustomStringConvertible {
    /// The id, the parts, and whether a reply is expected: for people, and of no fixed form.
    public var description: String {
        var parts = components.prefix(Self.shownComponents).map(\.description)
        if components.count > parts.count { parts.append("\(components.count - parts.count) more") }
        var text = "message \(id) [\(parts.joined(separator: ", "))]"
        if let replyPort { text += ", reply port: \(replyPort)" }
        if expectsReply { text += ", expects a reply" }
        if let remoteSender { text += ", from process \(remoteSender.processID)" }
        return text
    }

    private static var shownComponents: Int { 8 }
}

extension MachMessage.Component: CustomStringConvertible {
    /// The kind of the part; for bytes, how many.
    public var description: String {
        switch self {
        case .bytes(let bytes): bytes.count == 1 ? "1 byte" : "\(bytes.count) bytes"
        case .right(let right): "\(right)"
        case .descriptor(let descriptor): "descriptor \(descriptor.rawValue)"
        case .receiveRight(let port): "receive right of \(port)"
        }
    }
}

extension SendRight: CustomStringConvertible {
    /// Which port it leads to, and whether that is gone: for people, and of no fixed form.
    ///
    /// For a port of another process this asks the kernel whether it is gone.
    public var description: String {
        "right to \(destination.label)" + (destination.isDead ? " (dead)" : "")
    }
}

extension MachPort: CustomStringConvertible {
    /// The port's number in this process and its queue: for people, and of no fixed form.
    public var description: String {
        isValid ? "\(core.label) (\(queueCount) of \(queueLimit) messages)" : "\(core.label) (invalid)"
    }
}
