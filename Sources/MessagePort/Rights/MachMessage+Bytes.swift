// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension MachMessage {
    /// How many byte components there are.
    public var byteComponentCount: Int {
        parts.count { if case .bytes = $0 { true } else { false } }
    }

    /// Reads a byte component in place, without a copy.
    ///
    /// - Parameters:
    ///   - index: which of the byte components, from 0; others are not counted.
    ///   - body: reads the bytes, which are valid while it runs. Gets an empty span when there is no such component.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw.
    public func withBytes<Success: ~Copyable, Failure: Error>(
        at index: Int = 0, _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success {
        let bytes = byteComponent(at: index) ?? []
        // SAFETY: the raw view of a span is unsafe for types with padding; bytes have none.
        return try unsafe body(bytes.span.bytes)
    }

    /// Makes a message of one part, bytes that are written in place, without a copy.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - capacity: the room in bytes, 0 or more; fewer may be written, more trap.
    ///   - replyPort: where the receiver may reply.
    ///   - initializer: writes the bytes.
    /// - Throws: what the initializer threw.
    @inlinable public init<Failure: Error>(
        id: Int32 = 0, byteCapacity capacity: Int, replyPort: SendRight? = nil,
        initializingWith initializer: (inout OutputSpan<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        if capacity < 0 { fatalError("A capacity of \(capacity) bytes is not possible; choose 0 or more.") }
        // The error is passed in a variable, and room is reserved first, so that the list is made by code specialised
        // for lists of bytes, not by generic code.
        var failure: Failure?
        var bytes = makeRoom(forBytes: capacity)
        if capacity == 0 {
            // The empty list is shared by all, and would be written.
            var none = OutputSpan<UInt8>()
            try initializer(&none)
        } else if bytes.isEmpty {
            bytes.append(addingCapacity: capacity) { span in
                do throws(Failure) { try initializer(&span) } catch { failure = error }
            }
        } else {
            let count = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
                var span = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
                do throws(Failure) { try initializer(&span) } catch { failure = error }
                return unsafe span.finalize(for: buffer)
            }
            if count < bytes.count { bytes.removeLast(bytes.count - count) }
        }
        if let failure { throw failure }
        self.init(id: id, bytes: bytes, replyPort: replyPort)
    }

    /// Gives up the message's memory: its bytes are recycled for another.
    consuming func leaveMemory() { parts.leaveMemory() }

    private func byteComponent(at index: Int) -> [UInt8]? {
        var left = index
        for case .bytes(let bytes) in parts {
            if left == 0 { return bytes }
            left -= 1
        }
        return nil
    }
}

/// A list for `count` bytes: a small one has that many, to be overwritten; a larger one is empty, with room for them.
@usableFromInline func makeRoom(forBytes count: Int) -> [UInt8] {
    if count > 0, count <= BufferPool.capacity { return BufferPool.take(count) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    return bytes
}
