// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A loop's registrations: a slab.
struct RegistrationTable: Sendable {
    /// Each registration by its index. It is accessed in place: a copy counts references.
    var list: [Registration] = []
    private var free: [Int32] = []
    /// One registration of each source, for callers that have no index.
    private var known: [ItemID: Int32] = [:]
    private var descriptors: [DescriptorState] = []
    private var freeDescriptors: [Int32] = []

    /// How many are in use.
    var count: Int { list.count - free.count }

    /// A registration of a source; the cached index is that of one, if it is still valid.
    func registration(of source: RunLoopSource, near cachedIndex: RegistrationIndex) -> RegistrationIndex? {
        if cachedIndex < list.count, list[cachedIndex].source === source { return cachedIndex }
        return registration(of: source.id)
    }

    /// The registration of a source in a mode; the cached index is its own, if it is still valid.
    func registration(of source: RunLoopSource, in mode: Int, near cachedIndex: RegistrationIndex) -> RegistrationIndex?
    {
        if cachedIndex < list.count, list[cachedIndex].source === source, Int(list[cachedIndex].mode) == mode {
            return cachedIndex
        }
        return registration(of: source.id, in: mode)
    }

    func registration(of id: ItemID) -> RegistrationIndex? {
        known[id].map { Int($0) }
    }

    func registration(of id: ItemID, in mode: Int) -> RegistrationIndex? {
        guard let first = registration(of: id) else { return nil }
        var number = first
        repeat {
            if Int(list[number].mode) == mode { return number }
            number = Int(list[number].next)
        } while number != first
        return nil
    }

    func modes(of id: ItemID) -> [Int] {
        guard let first = registration(of: id) else { return [] }
        var modes: [Int] = []
        var number = first
        repeat {
            modes.append(Int(list[number].mode))
            number = Int(list[number].next)
        } while number != first
        return modes
    }

    /// Every source, with each mode that it is in.
    var all: [(source: RunLoopSource, mode: Int)] {
        list.compactMap { registration in registration.source.map { ($0, Int(registration.mode)) } }
    }
}

extension RegistrationTable {
    /// Prefetches a registration that will soon be accessed.
    mutating func fetch(_ number: RegistrationIndex) {
        unsafe withUnsafePointer(to: &list[number]) { unsafe sysPrefetch($0) }
    }

    func fetchSource(of number: RegistrationIndex) {
        if let source = list[number].source { unsafe sysPrefetch(Unmanaged.passUnretained(source).toOpaque()) }
    }

    /// Registers a source in a mode in which it is not registered.
    mutating func allocate(for source: RunLoopSource, in mode: Int) -> RegistrationIndex {
        let number = free.popLast() ?? Int32(list.count)
        var registration = Registration(source: source, mode: Int32(mode), next: number)
        if let first = known[source.id] {
            registration.next = list[Int(first)].next
            list[Int(first)].next = number
        } else {
            known[source.id] = number
        }
        if Int(number) == list.count { list.append(registration) } else { list[Int(number)] = registration }
        return Int(number)
    }

    /// Frees the registration of a source, which is on no ready list.
    mutating func deallocate(_ number: RegistrationIndex) {
        guard let source = list[number].source else { return }
        let next = list[number].next
        known[source.id] = Int(next) == number ? nil : next
        var previous = Int(next)
        while Int(list[previous].next) != number { previous = Int(list[previous].next) }
        list[previous].next = next
        setDescriptor(nil, of: number)
        list[number].source = nil
        free.append(Int32(number))
        if count == 0 { empty() }
    }

    /// The table is empty: it starts over, and releases its memory when that is much.
    private mutating func empty() {
        if list.capacity > Tuning.idleRegistrationCapacity {
            self = RegistrationTable()
        } else {
            list.removeAll(keepingCapacity: true)
            free.removeAll(keepingCapacity: true)
        }
    }
}

extension RegistrationTable {
    /// What is known of the descriptor of a registration's source; nil when it watches none.
    func descriptor(of number: RegistrationIndex) -> DescriptorState? {
        list[number].descriptor == Registration.nowhere ? nil : descriptors[Int(list[number].descriptor)]
    }

    /// Sets, or clears, the descriptor that a registration's source watches.
    mutating func setDescriptor(_ descriptor: DescriptorState?, of number: RegistrationIndex) {
        var position = list[number].descriptor
        guard let descriptor else {
            if position != Registration.nowhere { freeDescriptors.append(position) }
            list[number].descriptor = Registration.nowhere
            return
        }
        if position == Registration.nowhere {
            position = freeDescriptors.popLast() ?? Int32(descriptors.count)
            if Int(position) == descriptors.count { descriptors.append(descriptor) }
            list[number].descriptor = position
        }
        descriptors[Int(position)] = descriptor
    }

    /// Sets the report of a descriptor, if there is one.
    mutating func setReport(_ pass: Int?, of number: RegistrationIndex) {
        if list[number].descriptor != Registration.nowhere { descriptors[Int(list[number].descriptor)].report = pass }
    }

    /// Clears the report of a descriptor.
    ///
    /// - Returns: what was known, if there was a report.
    mutating func consumeReport(of number: RegistrationIndex) -> DescriptorState? {
        let descriptor = descriptors[Int(list[number].descriptor)]
        if descriptor.report == nil { return nil }
        descriptors[Int(list[number].descriptor)].report = nil
        return descriptor
    }
}

extension RegistrationTable: HeapPositions {
    mutating func note(_ position: Int, of number: RegistrationIndex) {
        list[number].position = Int32(truncatingIfNeeded: position)
    }
}

// All that a loop knows of a port-based source in a mode is in one registration. A message accesses it several times,
// and none of these accesses should search a table: so sources and callers cache the index of a registration. The
// cached index may be out of date, so each access first compares the source, and searches when the registration is
// another source's.

/// The index of a registration in its loop's table. It is reused when the registration is freed.
typealias RegistrationIndex = Int

/// What a loop knows of a port-based source in one mode: 32 bytes, as there may be very many sources.
struct Registration: Sendable {
    /// Nil when the registration is free.
    var source: RunLoopSource?
    /// The round of the ready list in which it was last performed.
    var lastRound: UInt64 = 0
    /// The index of the mode.
    let mode: Int32
    /// The next registration of the source, in a circular list.
    var next: Int32
    /// Its index in the mode's ready list; `nowhere` when it is not listed.
    var position = Self.nowhere
    /// The index of its descriptor in the table; `nowhere` when its source watches none.
    var descriptor = Self.nowhere

    static let nowhere: Int32 = -1

    var isListed: Bool { position != Self.nowhere }
}

/// What a loop knows of the descriptor of a port-based source in one mode.
struct DescriptorState: Sendable {
    /// The key of the registration in the mode's set, which is the only one.
    var key: UInt64
    var raw: CInt
    /// The pass in which the kernel last reported the descriptor, until the report is consumed.
    var report: Int?
}
