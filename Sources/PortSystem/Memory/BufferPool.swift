// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A message is made on one thread and goes on another. To the allocator that is the costly way: the memory goes back to
// the heap that it came from, whose lock both threads take. So the lists of bytes of small messages that were handled are
// kept for those that will be made: each thread has a clip of them in its magazine, and whole clips go from threads that
// leave more to those that take more.

import CPortShims
import Synchronization

/// Lists of bytes that nobody needs any more, for whoever needs one.
package enum BufferPool {
    /// A list that is made for so many bytes, or fewer, may become a spare one.
    package static let capacity = 64
    /// What the allocator may give in place of that: it rounds up, and gives a piece of memory whole whose rest would be too
    /// small for anybody (two steps of 16 bytes, in the C library).
    private static let kept = capacity..<capacity + 32
    /// Under the sanitizers nothing is kept: they see errors in how memory is used that this would hide, and cannot see
    /// that a list which is given on is nobody else's any more: counts of references tell that, in code that they do not
    /// watch.
    static var isUsed: Bool { shim_keeps_spares() }

    /// A list of so many bytes, whatever they are: to be written over. A spare one mostly has as many, and need not be emptied
    /// to be filled again.
    ///
    /// - Parameter count: 1 or more, `capacity` at most.
    /// - Returns: the list, which is nobody else's.
    package static func take(_ count: Int) -> [UInt8] {
        guard let magazine = unsafe presentMagazine ?? makeMagazine(), var bytes = unsafe magazine.pointee.take() else {
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

    /// Leaves a list for others. One that somebody else has too stays theirs alone.
    package static func leave(_ bytes: consuming [UInt8]) {
        guard kept.contains(bytes.capacity), let magazine = unsafe presentMagazine ?? makeMagazine(), isAlone(&bytes)
        else { return }
        unsafe magazine.pointee.leave(consume bytes)
    }

    /// What a list is: one reference, and nothing else.
    private final class Storage {}

    // SAFETY: of the object nothing is used but how many references there are to it. An empty list, which has allocated
    // nothing, does not get here.
    private static func isAlone(_ bytes: inout [UInt8]) -> Bool {
        unsafe withUnsafeMutablePointer(to: &bytes) { list in
            unsafe list.withMemoryRebound(to: Storage.self, capacity: 1) { storage in
                unsafe isKnownUniquelyReferenced(&storage.pointee)
            }
        }
    }

    // SAFETY: the thread's slot keeps the magazine as long as the pointer is there.
    private static var presentMagazine: UnsafeMutablePointer<SpareMagazine>? {
        unsafe shim_thread_spares()?.assumingMemoryBound(to: SpareMagazine.self)
    }

    private static let places = ThreadLocal<SpareMagazine.Place> { _ in shim_set_thread_spares(nil) }

    /// - Returns: nil where nothing is kept.
    private static func makeMagazine() -> UnsafeMutablePointer<SpareMagazine>? {
        if !isUsed { return nil }
        let place = SpareMagazine.Place()
        places.value = place
        unsafe shim_set_thread_spares(place.magazine)
        return unsafe place.magazine
    }
}

/// The spare lists of one thread.
private struct SpareMagazine: ~Copyable {
    /// Where it lies.
    @safe final class Place {
        let magazine = UnsafeMutablePointer<SpareMagazine>.allocate(capacity: 1)

        init() { unsafe magazine.initialize(to: SpareMagazine()) }

        deinit {
            unsafe magazine.deinitialize(count: 1)
            unsafe magazine.deallocate()
        }
    }

    private var clip = SpareClip()

    mutating func take() -> [UInt8]? {
        if clip.isEmpty { SpareDepot.shared.refill(&clip) }
        return clip.take()
    }

    mutating func leave(_ bytes: consuming [UInt8]) {
        if clip.isFull { SpareDepot.shared.empty(&clip) }
        if clip.isFull { clip.halve() }  // so that the depot is not asked for each
        clip.put(consume bytes)
    }
}

// @unchecked: one magazine has it, whose thread alone uses it, or the depot.
/// Some lists, which go from one thread to another as one.
@safe final class SpareClip: @unchecked Sendable {
    static let size = 32
    private let slots = UnsafeMutablePointer<[UInt8]>.allocate(capacity: SpareClip.size)
    private var count = 0

    deinit {
        unsafe slots.deinitialize(count: count)
        unsafe slots.deallocate()
    }

    var isEmpty: Bool { count == 0 }
    var isFull: Bool { count == Self.size }

    /// A list for which there is no room is not kept.
    func put(_ bytes: consuming [UInt8]) {
        if isFull { return }
        unsafe (slots + count).initialize(to: bytes)
        count += 1
    }

    func take() -> [UInt8]? {
        if isEmpty { return nil }
        count -= 1
        // It comes from the other processor, and takes about as long as four messages.
        if count >= 4 { unsafe prefetch(slots + (count - 4)) }
        return unsafe (slots + count).move()
    }

    private func prefetch(_ list: UnsafeMutablePointer<[UInt8]>) {
        unsafe list.withMemoryRebound(to: UnsafeRawPointer.self, capacity: 1) { unsafe shim_prefetch($0.pointee) }
    }

    /// Half of the lists go.
    func halve() {
        unsafe (slots + count / 2).deinitialize(count: count - count / 2)
        count /= 2
    }
}

// @unchecked: the lists are those of whoever has set `isTaken`.
/// The clips that no thread has. Who finds them taken goes without: nobody waits here, nor in a forked child whose parent
/// had them taken.
@safe final class SpareDepot: @unchecked Sendable {
    static let shared = SpareDepot()
    /// As many as the messages of a queue of 1,024 may need at once.
    static let mostClips = 32

    private let isTaken = Atomic<Bool>(false)
    /// How many full clips there are; read without the rest, to leave it alone when there is none.
    private let fullCount = Atomic<Int>(0)
    private var full: [SpareClip] = []
    private var empty: [SpareClip] = []

    /// Exchanges an empty clip for a full one, if there is one.
    func refill(_ clip: inout SpareClip) {
        if fullCount.load(ordering: .relaxed) == 0 { return }
        whileTaken {
            guard let refill = full.popLast() else { return }
            empty.append(clip)
            clip = refill
        }
    }

    /// Exchanges a full clip for an empty one, unless there are enough.
    func empty(_ clip: inout SpareClip) {
        if fullCount.load(ordering: .relaxed) >= Self.mostClips { return }
        whileTaken {
            if full.count >= Self.mostClips { return }  // others have come between
            full.append(clip)
            clip = empty.popLast() ?? SpareClip()
        }
    }

    private func whileTaken(_ body: () -> Void) {
        if isTaken.exchange(true, ordering: .acquiring) { return }
        body()
        fullCount.store(full.count, ordering: .relaxed)
        isTaken.store(false, ordering: .releasing)
    }
}
