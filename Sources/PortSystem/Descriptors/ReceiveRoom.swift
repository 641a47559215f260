// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Where a thread receives packets whose size it does not know: one piece of memory for each thread that receives any,
/// of which as much is touched as the largest packet had.
@safe final class ReceiveRoom {
    /// The largest packet that is received here.
    static let size = 65_536
    private static let rooms = ThreadLocal<ReceiveRoom>()

    private let memory: UnsafeMutableRawBufferPointer

    private init() {
        unsafe memory = .allocate(byteCount: Self.size, alignment: 1)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// Calls `body` with room for so many bytes, which are the calling thread's as long as it runs.
    static func withBytes<Result>(
        _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        let room = rooms.value ?? make()
        // SAFETY: the thread keeps its room until it ends.
        return try unsafe body(UnsafeMutableRawBufferPointer(rebasing: room.memory.prefix(min(count, size))))
    }

    private static func make() -> ReceiveRoom {
        let room = ReceiveRoom()
        rooms.value = room
        return room
    }
}
