// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The buffer in which a thread receives packets whose size it does not know: one for each thread that receives such
/// packets. Only as many of its pages are touched as the largest packet had.
@safe final class ReceiveRoom {
    /// The size of the largest packet that is received here.
    static let size = 65_536
    private static let rooms = ThreadLocal<ReceiveRoom>()

    private let memory: UnsafeMutableRawBufferPointer

    private init() {
        unsafe memory = .allocate(byteCount: Self.size, alignment: 1)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// Calls `body` with a buffer of at most `count` bytes, which belongs to the calling thread while `body` runs.
    static func withBytes<Result>(
        _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        let room = rooms.value ?? make()
        // SAFETY: the thread owns its buffer until it ends.
        return try unsafe body(UnsafeMutableRawBufferPointer(rebasing: room.memory.prefix(min(count, size))))
    }

    private static func make() -> ReceiveRoom {
        let room = ReceiveRoom()
        rooms.value = room
        return room
    }
}
