// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A message is made on one thread and released on another. That is the allocator's slow path: the memory goes back to
// the heap that it came from, whose lock both threads take. So the arrays of bytes of small messages are reused after
// the messages were handled: each thread has a magazine of them in its cache, and whole magazines move from threads that
// release more to threads that need more.

import CPortShims
import Synchronization

/// A pool of unused arrays of bytes.
package enum BufferPool {
    /// An array that was made for at most this many bytes may be put into the pool.
    package static var capacity: Int { Tuning.pooledCapacity }
    /// Under the sanitizers the pool is off. They find misuse of memory that the pool would hide. And they cannot see
    /// that an array which is passed on has no other owner: that is established by reference counts, in code that they
    /// do not instrument.
    static var isUsed: Bool { shim_pools_memory() }

    /// An array of `count` bytes with arbitrary contents, for the caller to overwrite. A pooled one mostly has that
    /// count already, and need not be emptied and filled again.
    ///
    /// - Parameter count: 1 or more, `capacity` at most.
    /// - Returns: the array, which has no other owner.
    package static func take(_ count: Int) -> [UInt8] {
        guard let magazine = unsafe presentMagazine ?? makeMagazine(), var bytes = unsafe take(&magazine.pointee) else {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(capacity)
            appendZeros(count, to: &bytes)
            return bytes
        }
        if bytes.count != count {
            bytes.removeAll(keepingCapacity: true)
            appendZeros(count, to: &bytes)
        }
        return bytes
    }

    private static func appendZeros(_ count: Int, to bytes: inout [UInt8]) {
        let zeros: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
        unsafe withUnsafeBytes(of: zeros) {
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: $0.baseAddress, count: count))
        }
    }

    /// Puts an array into the pool. One that has another owner is only released.
    package static func leave(_ bytes: consuming [UInt8]) {
        guard Tuning.pooledCapacities.contains(bytes.capacity), let magazine = unsafe presentMagazine ?? makeMagazine(),
            isAlone(&bytes)
        else { return }
        unsafe leave(consume bytes, &magazine.pointee)
    }

    private static func take(_ magazine: inout Magazine) -> [UInt8]? {
        if magazine.isEmpty { Depot.shared.refill(&magazine) }
        return magazine.take()
    }

    private static func leave(_ bytes: consuming [UInt8], _ magazine: inout Magazine) {
        if magazine.isFull { Depot.shared.empty(&magazine) }
        if magazine.isFull { magazine.halve() }  // so that not every call asks the depot
        magazine.push(consume bytes)
    }

    /// Stands for the object to which an array refers: an array is one reference, and nothing else.
    private final class Storage {}

    // SAFETY: only the reference count of the object is read. An empty array, which has allocated nothing, does not get
    // here.
    private static func isAlone(_ bytes: inout [UInt8]) -> Bool {
        unsafe withUnsafeMutablePointer(to: &bytes) { list in
            unsafe list.withMemoryRebound(to: Storage.self, capacity: 1) { storage in
                unsafe isKnownUniquelyReferenced(&storage.pointee)
            }
        }
    }

    // SAFETY: the thread's slot holds the cache as long as the pointer is set.
    private static var presentMagazine: UnsafeMutablePointer<Magazine>? {
        unsafe shim_thread_cache()?.assumingMemoryBound(to: Magazine.self)
    }

    private static let caches = ThreadLocal<ThreadCache> { _ in shim_set_thread_cache(nil) }

    /// - Returns: nil when the pool is off.
    private static func makeMagazine() -> UnsafeMutablePointer<Magazine>? {
        if !isUsed { return nil }
        let cache = ThreadCache()
        caches.value = cache
        unsafe shim_set_thread_cache(cache.magazine)
        return unsafe cache.magazine
    }
}

/// The pooled arrays of one thread. Its magazine stays at one address, to which the thread's slot points.
@safe private final class ThreadCache {
    let magazine = UnsafeMutablePointer<Magazine>.allocate(capacity: 1)

    init() { unsafe magazine.initialize(to: Magazine()) }

    deinit {
        unsafe magazine.deinitialize(count: 1)
        unsafe magazine.deallocate()
    }
}

// @unchecked: either one thread has it, or the depot.
/// A magazine: some arrays, which pass from one thread to another as a unit.
@safe final class Magazine: @unchecked Sendable {
    private let slots = UnsafeMutablePointer<[UInt8]>.allocate(capacity: Tuning.magazineSize)
    private var count = 0

    deinit {
        unsafe slots.deinitialize(count: count)
        unsafe slots.deallocate()
    }

    var isEmpty: Bool { count == 0 }
    var isFull: Bool { count == Tuning.magazineSize }

    /// Releases the array when there is no room for it.
    func push(_ bytes: consuming [UInt8]) {
        if isFull { return }
        unsafe (slots + count).initialize(to: bytes)
        count += 1
    }

    func take() -> [UInt8]? {
        if isEmpty { return nil }
        count -= 1
        if count >= Tuning.prefetchDistance { unsafe prefetch(slots + (count - Tuning.prefetchDistance)) }
        return unsafe (slots + count).move()
    }

    private func prefetch(_ list: UnsafeMutablePointer<[UInt8]>) {
        unsafe list.withMemoryRebound(to: UnsafeRawPointer.self, capacity: 1) { unsafe shim_prefetch($0.pointee) }
    }

    /// Releases half of the arrays.
    func halve() {
        unsafe (slots + count / 2).deinitialize(count: count - count / 2)
        count /= 2
    }
}

// @unchecked: the arrays belong to the thread that has set `isLocked`.
/// The magazines that no thread has. A thread that finds the depot locked does without: no thread waits here, not even in a
/// forked child whose parent held the lock.
@safe final class Depot: @unchecked Sendable {
    static let shared = Depot()

    private let isLocked = Atomic<Bool>(false)
    /// The number of full magazines; may be read without the lock, so that callers leave it alone when there are none.
    private let fullCount = Atomic<Int>(0)
    private var full: [Magazine] = []
    private var empty: [Magazine] = []

    /// Exchanges an empty magazine for a full one, if there is one.
    func refill(_ magazine: inout Magazine) {
        if fullCount.load(ordering: .relaxed) == 0 { return }
        withLockIfFree {
            guard let refill = full.popLast() else { return }
            empty.append(magazine)
            magazine = refill
        }
    }

    /// Exchanges a full magazine for an empty one, unless the depot is full.
    func empty(_ magazine: inout Magazine) {
        if fullCount.load(ordering: .relaxed) >= Tuning.mostMagazines { return }
        withLockIfFree {
            if full.count >= Tuning.mostMagazines { return }  // other threads have added magazines meanwhile
            full.append(magazine)
            magazine = empty.popLast() ?? Magazine()
        }
    }

    private func withLockIfFree(_ body: () -> Void) {
        if isLocked.exchange(true, ordering: .acquiring) { return }
        body()
        fullCount.store(full.count, ordering: .relaxed)
        isLocked.store(false, ordering: .releasing)
    }
}

/// Prefetches a line of memory that will soon be read. An invalid address is harmless.
package func sysPrefetch(_ address: UnsafeRawPointer?) { unsafe shim_prefetch_to_read(address) }
