// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Records what run loops do: runs, activities, callouts and waits, with their times.
///
/// A tracer is attached to one or more loops, also while they run. It stores the newest ``capacity`` events of each;
/// the memory for them, about 100 bytes an event, is allocated when a loop is attached. Recording an event costs one
/// reading of the clock and three locks that no thread holds for long, no memory and no other system call. A loop
/// without a tracer pays one relaxed load for each activity, callout and wait.
///
/// The events are stored until the tracer is released, also when the loop's thread ends. A tracer that is released
/// detaches itself. An optimized build may release it after its last use, which is mostly the one that reads the
/// events.
///
/// - Important: Thread safety: any thread.
public final class RunLoopTracer: Sendable {
    /// How many events of a loop are stored, unless another number is given.
    public static let defaultCapacity = 16_384
    /// The most events of a loop that can be stored.
    public static let maximumCapacity = 1_048_576

    private struct Attachment {
        weak var loop: ThreadRunLoop?
        var recording: TraceRecording
    }

    private let attachments = Mutex<[Attachment]>([])

    /// How many events of each loop are stored.
    public let capacity: Int

    /// Makes a tracer that is attached to nothing.
    ///
    /// - Parameter capacity: how many events of each loop to store: 1 to ``maximumCapacity``, or the call traps.
    public init(capacity: Int = defaultCapacity) {
        if !(1...Self.maximumCapacity).contains(capacity) {
            fatalError(
                "A tracer keeps 1 to \(Self.maximumCapacity) events of a loop, not \(capacity). Choose a capacity in that range."
            )
        }
        self.capacity = capacity
    }

    deinit {
        let all = attachments.withLock { $0 }
        for attachment in all { attachment.loop?.remove(attachment.recording) }
    }

    /// Records what a loop does from now on, until ``detach(from:)``. Attaching twice changes nothing, and a loop whose
    /// thread has ended records nothing.
    ///
    /// - Parameter loop: the loop.
    public func attach(to loop: ThreadRunLoop) {
        if loop.hasEnded { return }
        attachments.withLock { attachments in
            let recording: TraceRecording
            if let old = attachments.first(where: { $0.loop === loop }) {
                recording = old.recording
            } else {
                recording = TraceRecording(of: loop, capacity: capacity)
                attachments.append(Attachment(loop: loop, recording: recording))
            }
            recording.open()
            loop.add(recording)
        }
    }

    /// Stops recording a loop. Recorded events stay; whatever is in progress ends here in the trace.
    ///
    /// - Parameter loop: the loop.
    public func detach(from loop: ThreadRunLoop) {
        attachments.withLock { attachments in
            guard let recording = attachments.first(where: { $0.loop === loop })?.recording else { return }
            loop.remove(recording)
            recording.close()
        }
    }

    /// How many events were recorded and are no longer stored, of all loops.
    public var droppedCount: Int { recordings.reduce(0) { $0 + $1.droppedCount } }

    /// The events of all loops, oldest first. Within each loop, every begin has its end, and they nest: whatever is in
    /// progress ends at the time of the call, and ends whose begin was not recorded, or is no longer stored, are left
    /// out.
    public var events: [RunLoopTraceEvent] {
        let all = recordings.map(\.events)
        if all.count == 1 { return all[0] }
        // Stable, so the order within each loop is preserved.
        return Array(all.joined()).enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
    }

    var recordings: [TraceRecording] {
        attachments.withLock { $0.map(\.recording) }
    }
}
