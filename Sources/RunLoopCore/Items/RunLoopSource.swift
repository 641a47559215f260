// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// Something outside a loop that has work for it, handled on the loop's thread.
///
/// A *custom* source (version 0) is signalled by hand with ``signal()``. A *port-based* source (version 1) has a check
/// that says whether there is something to handle, and ``ring()``, which announces that the check's answer may have
/// changed; it may have a descriptor, whose readiness has the same effect as ``ring()``.
///
/// A source may be in several modes and several loops. They hold it until it is removed or invalidated; it holds what
/// its routines hold.
///
/// - Important: Thread safety: any thread. The perform routine is called on the thread of a loop that it is in;
///   schedule and cancel routines on the thread that adds, removes or invalidates. No lock is held during a routine.
public final class RunLoopSource: Sendable {
    /// Says whether a port-based source has something to handle. It must be quick, must not block, and may be called on
    /// the thread of each loop that the source is in.
    public typealias Readiness = @Sendable () -> Bool
    /// Is notified that the source has entered or left a mode of a loop.
    ///
    /// It is called after the fact, on the thread that adds, removes or invalidates, and holds no lock that other
    /// threads would wait for. So when one thread adds a source while another removes or invalidates it, `cancel` may
    /// be called before, or concurrently with, `schedule` for the same mode. A count of the two is correct in the end.
    public typealias ModeRoutine = @Sendable (ThreadRunLoop, RunLoopMode) -> Void
    /// Handles what the source has.
    public typealias Perform = @Sendable () -> Void

    struct State: Sendable {
        var homes = ItemHomes()
        /// Holds `signal` of a custom source, or `seat` of a port-based one: sharing it saves eight bytes.
        private var word: UInt64 = 0
        /// A port-based source: the descriptor that it watches.
        var descriptor: CInt?

        /// A custom source: the stamp of the first signal since it was last performed.
        var signal: UInt64? {
            get { word == 0 ? nil : word }  // 0 is no stamp
            set { word = newValue ?? 0 }
        }

        /// A port-based source: the cached index of one of its registrations in one of its loops. It may be out of
        /// date; then the loop has to search.
        var seat: RegistrationIndex {
            get { RegistrationIndex(word) }
            set { word = UInt64(newValue) }
        }
    }

    /// Its traits, in one byte: see `ObjectSizeTests`.
    private struct Traits: OptionSet {
        let rawValue: UInt8
        static let portBased = Traits(rawValue: 1)
        static let keepsModeAlive = Traits(rawValue: 2)
    }

    package let id = ItemID()
    let routine: any SourceRoutine
    let state: Mutex<State>  // comes before the loop's lock
    /// A port-based source that was signalled: it is on the ready lists of all its modes, or about to be put there.
    let isRung = Atomic<Bool>(false)

    private let traits: Traits
    var isPortBased: Bool { traits.contains(.portBased) }
    /// Whether the source keeps a run going. A source that only watches for an end does not.
    var keepsModeAlive: Bool { traits.contains(.keepsModeAlive) }

    private let label: SourceLabel

    /// What it is called in traces, reports and descriptions; nil when it was given no name.
    public var name: String? { label.name }
    /// Sources that have work at the same time are performed lowest first, equal ones in the order in which they
    /// received it.
    public var order: Int { label.order }

    /// Makes a source from its routine, for sources of this package.
    package init(
        label: SourceLabel, isPortBased: Bool = true, keepsModeAlive: Bool = true, routine: any SourceRoutine
    ) {
        self.label = label
        let traits: Traits = isPortBased ? .portBased : []
        self.traits = keepsModeAlive ? traits.union(.keepsModeAlive) : traits
        self.routine = routine
        state = Mutex(State())
    }

    /// As above, for sources of which there are few.
    package convenience init(
        name: String? = nil, order: Int = 0, isPortBased: Bool = true, keepsModeAlive: Bool = true,
        routine: any SourceRoutine
    ) {
        let isPlain = name == nil && order == 0
        self.init(
            label: isPlain ? .plain : SourceLabel(name, order: order), isPortBased: isPortBased,
            keepsModeAlive: keepsModeAlive, routine: routine)
    }

    /// Makes a custom source (version 0), which is performed after it was signalled.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - order: lower ones are performed first.
    ///   - schedule: called for each mode that the source enters.
    ///   - cancel: called for each mode that the source leaves, also because it was invalidated or the thread ends.
    ///   - perform: handles what the source has.
    public convenience init(
        name: String? = nil, order: Int = 0, schedule: ModeRoutine? = nil, cancel: ModeRoutine? = nil,
        perform: @escaping Perform
    ) {
        self.init(
            name: name, order: order, isPortBased: false,
            routine: SourceClosures(schedule: schedule, cancel: cancel, body: perform))
    }

    /// Makes a port-based source (version 1).
    ///
    /// After `perform` the check is made again, so `perform` may leave something for the next pass. Something else may
    /// have emptied the source between the check and `perform`, so `perform` must check for itself.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - order: lower ones are performed first.
    ///   - readiness: says whether there is something to handle.
    ///   - schedule: called for each mode that the source enters.
    ///   - cancel: called for each mode that the source leaves, also because it was invalidated or the thread ends.
    ///   - perform: handles what is there: one item, or all.
    public convenience init(
        name: String? = nil, order: Int = 0, readiness: @escaping Readiness, schedule: ModeRoutine? = nil,
        cancel: ModeRoutine? = nil, perform: @escaping Perform
    ) {
        self.init(
            name: name, order: order,
            routine: SourceClosures(readiness: readiness, schedule: schedule, cancel: cancel, body: perform))
    }

    /// Makes a port-based source (version 1) for a descriptor: anything that `poll(2)` can wait for.
    ///
    /// It is ready while the descriptor is readable, at its end, or in error: as long as `perform` leaves something
    /// there, it is called again. The loop never reads the descriptor.
    ///
    /// The caller keeps the descriptor open until the source is invalid. A source whose descriptor was closed is never
    /// ready again; when a duplicate of it lives on elsewhere, `perform` is called for what arrives there, and finds
    /// the descriptor closed.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - descriptor: an open descriptor, which remains the caller's.
    ///   - order: lower ones are performed first.
    ///   - schedule: called for each mode that the source enters.
    ///   - cancel: called for each mode that the source leaves, also because it was invalidated or the thread ends.
    ///   - perform: reads the descriptor.
    public convenience init(
        name: String? = nil, descriptor: CInt, order: Int = 0, schedule: ModeRoutine? = nil,
        cancel: ModeRoutine? = nil, perform: @escaping Perform
    ) {
        self.init(
            name: name, order: order, routine: SourceClosures(schedule: schedule, cancel: cancel, body: perform))
        state.withLock { $0.descriptor = descriptor }
    }

    /// Whether it may still be performed.
    public var isValid: Bool { state.withLock { $0.homes.isValid } }

    /// Whether it has been signalled since a loop last checked or performed it.
    public var isSignalled: Bool {
        isPortBased ? isRung.load(ordering: .acquiring) : state.withLock { $0.signal != nil }
    }
}

extension RunLoopSource: Hashable {
    /// Whether both are the same source.
    public static func == (left: RunLoopSource, right: RunLoopSource) -> Bool {
        left === right
    }

    /// Hashes the source's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

extension RunLoopSource: CustomStringConvertible {
    /// What it is, its name when it has one, and its number.
    public var description: String {
        id.description(of: isPortBased ? "port-based source" : "custom source", named: name)
    }
}
