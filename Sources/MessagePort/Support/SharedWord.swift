// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The two numbers of a connection's flow control, each in memory that one side writes and the other reads: how many
// messages the port has granted, and how many the client has sent. So a sender knows without a call whether there is
// room, and the port knows without reading what is on its way.
//
// Each side writes its number and then reads the other's, in one order for all: a grant that the port takes back is
// exceeded by at most the message that was being sent then.

import PortSystem
import Synchronization

/// A number that one process writes and another reads.
// @unchecked: the pointer never changes, and the number is atomic.
@safe struct SharedWord: @unchecked Sendable {
    private let memory: SharedMemory  // immutable; retained
    // SAFETY: in the memory; an atomic has the layout of its value.
    private let atomic: UnsafeMutablePointer<Atomic<UInt64>>  // immutable

    /// - Precondition: the offset is a multiple of 8 within the memory.
    fileprivate init(_ memory: SharedMemory, at offset: Int) {
        self.memory = memory
        unsafe atomic = (memory.base + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    func load() -> UInt64 { unsafe atomic.pointee.load(ordering: .sequentiallyConsistent) }

    /// Only the memory's maker may store.
    func store(_ value: UInt64) { unsafe atomic.pointee.store(value, ordering: .sequentiallyConsistent) }
}

/// How many messages a client has sent over a connection: memory of the client.
enum SentCount {
    private static let size = 4096

    /// Makes the memory, for the client.
    ///
    /// - Returns: its number, and the file for the port.
    static func make() throws(SystemError) -> (word: SharedWord, file: SharedDescriptor) {
        let (memory, file) = try SharedMemory.make(size: size, name: "port-sent")
        return (SharedWord(memory, at: 0), file)
    }

    /// Maps what a client has sent; nil when it is no such memory.
    static func map(_ file: SharedDescriptor) throws(SystemError) -> SharedWord? {
        try SharedMemory.map(file, size: size).map { SharedWord($0, at: 0) }
    }
}

/// How many messages each connection of a port may send: one memory of the port for all of them.
final class GrantPage: Sendable {
    /// How many connections have a number here. Each has a cache line of its own.
    static let count = 1024
    private static let stride = 64

    private let memory: SharedMemory  // immutable
    /// For clients.
    let file: SharedDescriptor  // immutable

    init() throws(SystemError) {
        (memory, file) = try SharedMemory.make(size: Self.count * Self.stride, name: "port-grants")
    }

    /// The number of a connection; nil beyond the page.
    func word(at index: Int) -> SharedWord? {
        (0..<Self.count).contains(index) ? SharedWord(memory, at: index * Self.stride) : nil
    }

    /// Maps a client's number in a page that its port has sent; nil when it is no such page, or beyond it.
    static func map(_ file: SharedDescriptor, at index: Int) throws(SystemError) -> SharedWord? {
        guard (0..<count).contains(index) else { return nil }
        return try SharedMemory.map(file, size: count * stride).map { SharedWord($0, at: index * stride) }
    }
}
