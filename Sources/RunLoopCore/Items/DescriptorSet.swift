// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import Synchronization

// The descriptors that a mode waits for, and the loop's event descriptor with them: one epoll set.
//
// Several sources may watch one descriptor; it is in the kernel's set once, under a key that is never reused. A report
// under a key that is no longer registered is stale, and is dropped. When a stale key is reported again, its descriptor
// was closed while a duplicate of it lives on, and cannot be removed from the kernel's set: then the set is replaced.

/// The registration of a source's descriptor in a mode's set.
struct DescriptorRegistration: Sendable {
    var set: DescriptorSet
    var key: UInt64
    var descriptor: CInt

    func end(for source: RunLoopSource) {
        set.leave(key, source)
    }
}

/// Thread safety: any thread may join and leave; only the loop's thread waits. The lock is the last that a thread
/// takes.
final class DescriptorSet: Sendable {
    fileprivate struct Entry {
        var descriptor: CInt
        var sources: SmallList<RunLoopSource>
        /// Set for a wake channel, which no source watches.
        var channel: WakeChannelRegistration?

        var events: EpollEvents { channel == nil ? .readable : [.readable, .edgeTriggered] }
    }

    fileprivate struct Registrations {
        /// The kernel's set: replaced as a whole, and retained by a wait that is in progress.
        var kernel: Shared<EpollSet>
        var entries: [UInt64: Entry] = [:]
        /// The key under which a descriptor's number is in the kernel's set.
        var keys: [CInt: UInt64] = [:]
        var lastKey: UInt64 = 0
        /// The keys that were reported after they had ended, since the kernel's set was made.
        var staleKeys: Set<UInt64> = []
    }

    private static let wakeEventKey: UInt64 = 0

    private let wakeEvent: Shared<EventDescriptor>  // immutable
    private let state: Mutex<Registrations>

    /// Makes a set that holds only the event descriptor.
    init(wakeEvent: Shared<EventDescriptor>) throws(SystemError) {
        self.wakeEvent = wakeEvent
        state = Mutex(Registrations(kernel: try Self.makeKernel(wakeEvent)))
    }

    /// The kernel's set, until it is replaced: readable while there is something to report.
    var raw: CInt { state.withLock { $0.kernel.value.raw } }

    private static func makeKernel(_ wakeEvent: Shared<EventDescriptor>) throws(SystemError) -> Shared<EpollSet> {
        let kernel = Shared(try EpollSet())
        try kernel.value.add(wakeEvent.value.raw, .readable, key: wakeEventKey)
        return kernel
    }

    /// Registers a source's descriptor.
    ///
    /// - Returns: the registration, and whether it is new: false when the source already watches this very open file.
    func join(_ descriptor: CInt, _ source: RunLoopSource) throws(SystemError) -> (
        registration: DescriptorRegistration, isNew: Bool
    ) {
        let (key, isNew) = try state.withLock { (state) throws(SystemError) in
            try state.join(descriptor, source)
        }
        return (DescriptorRegistration(set: self, key: key, descriptor: descriptor), isNew)
    }

    /// Ends a registration; the last source of a descriptor removes it from the kernel's set.
    func leave(_ key: UInt64, _ source: RunLoopSource) {
        state.withLock { $0.leave(key, source) }
    }

    /// Waits until a descriptor is ready, the event descriptor is signalled or the deadline has passed; then calls
    /// `body` for the sources of each descriptor that is ready.
    func wait(until deadline: MonotonicInstant, _ body: (SmallList<RunLoopSource>) -> Void) {
        let kernel = state.withLock { $0.kernel }
        var mustRenew = false
        kernel.value.wait(until: deadline) { report in
            if report.key == Self.wakeEventKey { return wakeEvent.value.clear() }
            let (entry, isStaleAgain) = state.withLock { $0.entry(of: report.key) }
            if isStaleAgain { mustRenew = true }
            if let channel = entry?.channel { return channel.didReport() }
            if let entry { body(entry.sources) }
        }
        if mustRenew { renew() }
    }

    /// Lets edges of a wake channel end the waits.
    ///
    /// - Returns: the key of the registration.
    func join(wakeChannel descriptor: CInt, _ channel: WakeChannelRegistration) throws(SystemError) -> UInt64 {
        try state.withLock { (state) throws(SystemError) in try state.join(wakeChannel: descriptor, channel) }
    }

    /// Ends the registration of a wake channel, which is still open.
    func leave(_ key: UInt64, wakeChannel descriptor: CInt) {
        let entry = state.withLock { $0.leave(key, wakeChannel: descriptor) }
        withExtendedLifetime(entry) {}  // released without the lock
    }

    /// Replaces the kernel's set. While no resources are left to make another, the old one stays in use, and the next
    /// stale report tries again.
    private func renew() {
        do throws(SystemError) {
            let kernel = try Self.makeKernel(wakeEvent)
            try state.withLock { (state) throws(SystemError) in try state.replace(with: kernel) }
        } catch {
            // Until then the stale report ends each wait at once: the loop pauses, and leaves the processor to other
            // threads.
            if error.isShortage || error.isRefusal { return sysSleep(Tuning.timeUntilRenewal) }
            fatalError(
                "A descriptor was closed while a run loop source watched it, and the loop cannot recover: \(error). "
                    + "Invalidate the source before you close its descriptor.")
        }
    }
}

extension DescriptorSet.Registrations {
    fileprivate mutating func join(_ descriptor: CInt, _ source: RunLoopSource) throws(SystemError) -> (UInt64, Bool) {
        do throws(SystemError) {
            try kernel.value.add(descriptor, .readable, key: lastKey + 1)
        } catch {
            guard error.code == EEXIST else { throw error }
            guard let key = keys[descriptor] else {
                // The kernel still has the file under a key that has ended: the number was closed and opened again.
                try kernel.value.modify(descriptor, .readable, key: lastKey + 1)
                return (register(descriptor, source), true)
            }
            let isNew = entries[key]?.sources.contains(source) != true
            if isNew { entries[key]?.sources.append(source) }
            return (key, isNew)
        }
        return (register(descriptor, source), true)
    }

    private mutating func register(_ descriptor: CInt, _ source: RunLoopSource) -> UInt64 {
        lastKey += 1
        keys[descriptor] = lastKey
        entries[lastKey] = DescriptorSet.Entry(descriptor: descriptor, sources: SmallList(source))
        return lastKey
    }

    fileprivate mutating func leave(_ key: UInt64, _ source: RunLoopSource) {
        guard var entry = entries[key] else { return }
        entry.sources.removeAll { $0 === source }
        entries[key] = entry.sources.isEmpty ? nil : entry
        // A number that was closed and opened again belongs to a later registration.
        guard entry.sources.isEmpty, keys[entry.descriptor] == key else { return }
        keys[entry.descriptor] = nil
        kernel.value.remove(entry.descriptor)
    }

    fileprivate mutating func join(
        wakeChannel descriptor: CInt, _ channel: WakeChannelRegistration
    ) throws(SystemError) -> UInt64 {
        let entry = DescriptorSet.Entry(descriptor: descriptor, sources: SmallList(), channel: channel)
        try kernel.value.add(descriptor, entry.events, key: lastKey + 1)
        lastKey += 1
        keys[descriptor] = lastKey
        entries[lastKey] = entry
        return lastKey
    }

    fileprivate mutating func leave(_ key: UInt64, wakeChannel descriptor: CInt) -> DescriptorSet.Entry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        if keys[descriptor] == key { keys[descriptor] = nil }
        kernel.value.remove(descriptor)
        return entry
    }

    /// The entry for a reported key; nil when it has left meanwhile.
    fileprivate mutating func entry(of key: UInt64) -> (DescriptorSet.Entry?, mustRenew: Bool) {
        if let entry = entries[key] { return (entry, false) }
        let isNew = staleKeys.insert(key).inserted
        return (nil, !isNew || staleKeys.count > Tuning.staleKeyLimit)
    }

    /// Moves every registration to a new kernel set; those whose descriptor is closed never report again.
    ///
    /// - Throws: when the kernel lacks the resources for one of them: then nothing has changed.
    fileprivate mutating func replace(with fresh: Shared<EpollSet>) throws(SystemError) {
        var closed: [CInt] = []
        for (descriptor, key) in keys {
            do throws(SystemError) {
                try fresh.value.add(descriptor, entries[key]?.events ?? .readable, key: key)
            } catch {
                if error.isShortage { throw error }
                closed.append(descriptor)
            }
        }
        for descriptor in closed { keys[descriptor] = nil }
        kernel = fresh
        staleKeys = []
    }
}
