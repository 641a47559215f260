// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What a thread sleeps on that waits for descriptors and for words in memory at once: io_uring(7). Whoever wakes a word takes
// one system call, the sleeper one, and no descriptor is read; so it is where most is to come by way of words. Systems may
// forbid it: then there is none, and words cannot be slept on beside descriptors.

import CPortShims
import PortCLibrary
import Synchronization

/// A word in shared memory on which a thread may sleep while it has a value, and which other processes wake.
package struct SharedWord: Sendable {
    fileprivate let address: UInt
    fileprivate let value: UInt32
    /// Which word it is. Other memory may come to lie at the same address.
    fileprivate let identity: UInt64

    /// - Parameters:
    ///   - address: where it lies. The kernel looks there, and finds no memory when there is none any more.
    ///   - value: the value that it has for as long as it may be slept on.
    ///   - identity: a number that no other word has.
    init(_ address: UnsafeRawPointer, sleepingAt value: UInt32, identity: UInt64) {
        self.address = UInt(bitPattern: address)
        self.value = value
        self.identity = identity
    }
}

/// Sleeps until a descriptor is readable, or one of several words is woken. One thread uses it: the one that has made it.
@safe package struct CombinedSleep: ~Copyable, @unchecked Sendable {
    // @unchecked: the pointers in it lead to its own mappings.
    private var waiter: shim_waiter
    private let descriptor: CInt
    /// What the kernel waits for.
    private var isWatching = false
    private var words: [Entry] = []
    private var lastKey = Self.descriptorKey

    private struct Entry {
        let identity: UInt64
        let key: UInt64
        var isWanted = true
    }

    /// Whether the environment says that there shall be none (`PORT_IO_URING=never`).
    package static let isUnwanted = sysEnvironment("PORT_IO_URING") == "never"

    /// At most so many words at once; the kernel does not wait for more.
    package static let wordLimit = 16
    /// Each word may replace another one; and there is the descriptor.
    private static let entryCount: UInt32 = 64
    private static let descriptorKey: UInt64 = 0

    /// - Parameter descriptor: stays open as long as this exists.
    /// - Throws: ENOSYS, EPERM, EINVAL where the system does not have it or forbids it; EMFILE, ENFILE, ENOMEM.
    package init(watching descriptor: CInt) throws(SystemError) {
        var made = unsafe shim_waiter()
        _ = try retrying(.io_uring_setup) { unsafe shim_waiter_open(&made, Self.entryCount) }
        unsafe waiter = made
        self.descriptor = descriptor
    }

    deinit {
        var ended = unsafe waiter
        unsafe shim_waiter_close(&ended)
    }

    /// Has the next sleep, and no later one, end also when the word is woken, or does not have its value. For `wordLimit` words at
    /// most.
    package mutating func want(_ word: SharedWord) {
        if let index = words.firstIndex(where: { $0.identity == word.identity }) {
            words[index].isWanted = true
        } else if words.count(where: \.isWanted) < Self.wordLimit {
            lastKey += 1
            unsafe shim_waiter_add_word(&waiter, word.address, word.value, lastKey)
            words.append(Entry(identity: word.identity, key: lastKey))
        }
    }

    /// Sleeps until the descriptor is readable, a word is woken or does not have its value, or the deadline has come;
    /// perhaps not so long.
    ///
    /// - Parameter deadline: when to wake at the latest.
    /// - Returns: whether the descriptor was readable.
    /// - Throws: the reason why the kernel does not wait for words: from now on this is of no use.
    package mutating func sleep(until deadline: MonotonicInstant) throws(SystemError) -> Bool {
        prepare()
        do throws(SystemError) {
            _ = try retrying(.io_uring_enter) { unsafe shim_waiter_wait(&waiter, deadline.remainingNanoseconds) }
        } catch {
            if error.code != ETIME { throw error }
        }
        return try takeAll()
    }

    /// The words that are not wanted any more go. Those that the kernel waits for already stay, and cost nothing.
    private mutating func prepare() {
        if !isWatching {
            unsafe shim_waiter_add_descriptor(&waiter, descriptor, Self.descriptorKey)
            isWatching = true
        }
        for index in words.indices.reversed() {
            if words[index].isWanted {
                words[index].isWanted = false
            } else {
                unsafe shim_waiter_remove(&waiter, words[index].key)
                words.remove(at: index)
            }
        }
    }

    /// Takes what has happened.
    ///
    /// - Returns: whether the descriptor was readable.
    private mutating func takeAll() throws(SystemError) -> Bool {
        var (isReadable, failure) = (false, nil as SystemError?)
        var (key, result): (UInt64, CInt) = (0, 0)
        while unsafe shim_waiter_take(&waiter, &key, &result) != 0 {
            if key == Self.descriptorKey {
                isWatching = false
                isReadable = true
            } else if let index = words.firstIndex(where: { $0.key == key }) {
                words.remove(at: index)
            } else {
                continue  // it was not wanted any more
            }
            if result < 0, result != -EAGAIN { failure = SystemError(-result) }
        }
        if let failure { throw failure }
        return isReadable
    }
}
