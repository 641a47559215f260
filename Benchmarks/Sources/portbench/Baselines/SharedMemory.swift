// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Foundation

// What the machine itself allows: two sides that spin on shared memory.

extension Contestant {
    /// Round trips between two threads.
    static func memoryPair(on placement: Placement) throws -> Contestant {
        let memory = try MappedMemory()
        let thread = ServingThread(memory, answers: true, at: placement.far)
        return memory.pair(on: placement) { thread.join() }
    }

    /// Round trips between two processes.
    static func memoryProcessPair(on placement: Placement) throws -> Contestant {
        let memory = try MappedMemory()
        let child = try memory.spawnChild(answers: true, at: placement.far)
        return memory.pair(on: placement) { BareChild.wait(for: child) }
    }

    /// Messages of 64 bytes to another process.
    static func memoryStream() throws -> Contestant {
        let memory = try MappedMemory()
        let child = try memory.spawnChild(answers: false)
        return Contestant(
            name: MappedMemory.name, timesLaps: false,
            run: { count, _ in bare_memory_send(memory.start, Int64(count)) },
            end: {
                bare_memory_end(memory.start)
                BareChild.wait(for: child)
            })
    }

    /// Bodies of `size` bytes to another thread, in pieces, as through a connection's ring.
    static func bodyRing(_ size: Int, pastCaches: Bool, on placement: Placement) throws -> Contestant {
        let ring = bare_body_ring_start(Int64(size), pastCaches ? 1 : 0, placement.far.number)
        guard let ring else { throw BenchmarkFailure("no thread") }
        return Contestant(
            name: pastCaches ? "bare ring, past the caches" : "bare ring",
            run: { count, laps in
                try placement.near.run { bare_body_ring_send(ring, Int64(count), laps?.filled(count)) }
            }, end: { bare_body_ring_end(ring) })
    }

    /// Bodies of `size` bytes that this thread writes and another one reads, in the same memory: one, or two in turn.
    static func bodyPasses(_ size: Int, slots: Int, on placement: Placement) throws -> Contestant {
        guard let passes = bare_passes_start(size, slots, placement.far.number) else {
            throw BenchmarkFailure("no thread")
        }
        return Contestant(
            name: "bare memory, the same passes" + (slots == 1 ? "" : ", \(slots) bodies in turn"),
            run: { count, laps in
                try placement.near.run { bare_passes_run(passes, Int64(count), laps?.filled(count)) }
            }, end: { bare_passes_end(passes) })
    }

    /// Messages of 64 bytes to another thread, each in memory of its own.
    static func queueStream() throws -> Contestant {
        guard let queue = bare_queue_start() else { throw BenchmarkFailure("no thread") }
        return Contestant(
            name: "bare mutex + malloc", timesLaps: false, run: { count, _ in bare_queue_send(queue, Int64(count)) },
            end: { bare_queue_end(queue) })
    }

    /// The same to `number` queues.
    static func queueField(_ number: Int) throws -> Contestant {
        guard let field = bare_queue_field_start(Int64(number)) else { throw BenchmarkFailure("no thread") }
        return Contestant(
            name: "bare mutex + malloc", timesLaps: false,
            run: { count, _ in bare_queue_field_send(field, Int64(count)) }, end: { bare_queue_field_end(field) })
    }
}

/// Memory that this process shares with a thread or a process.
///
/// @unchecked: the C that uses the memory on both sides is made for that.
final class MappedMemory: @unchecked Sendable {
    static let name = "bare memory, spinning"

    let start: OpaquePointer
    private let file: Int32

    /// Makes some, or maps what another process has made.
    init(of file: Int32 = bare_memory_file()) throws {
        guard file >= 0, let start = bare_memory_map(file) else { throw BenchmarkFailure("no shared memory: \(errno)") }
        (self.start, self.file) = (start, file)
    }

    deinit {
        bare_memory_unmap(start)
        close(file)
    }

    /// Plays the other side until the end.
    func serve(answers: Bool) { bare_memory_serve(start, answers ? 1 : 0) }

    fileprivate func spawnChild(answers: Bool, at processor: Processor = .any) throws -> pid_t {
        try BareChild.spawn(Child.arguments(.memory, [answers ? "1" : "0"], at: processor), handing: file)
    }

    fileprivate func pair(on placement: Placement, join: @escaping () -> Void) -> Contestant {
        Contestant(
            name: Self.name,
            run: { [self] count, laps in
                try placement.near.run { bare_memory_run(self.start, Int64(count), laps?.filled(count)) }
            },
            end: { [self] in
                bare_memory_end(start)
                join()
            })
    }
}

/// A thread that plays the other side.
private final class ServingThread: Sendable {
    private let ended = DispatchSemaphore(value: 0)

    init(_ memory: MappedMemory, answers: Bool, at processor: Processor) {
        Thread { [ended] in
            // An unbound thread is slower, but correct.
            try? processor.bind()
            memory.serve(answers: answers)
            ended.signal()
        }.start()
    }

    func join() { ended.wait() }
}
