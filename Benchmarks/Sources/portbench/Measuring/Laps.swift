// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The times of single operations, in nanoseconds.
///
/// @unchecked: one thread writes while a run is under way, and the one that started the run reads when it has ended.
final class Laps: @unchecked Sendable {
    private let memory: UnsafeMutableBufferPointer<Int64>
    private var count = 0

    init(capacity: Int) {
        memory = .allocate(capacity: capacity)
        memory.initialize(repeating: 0)
    }

    deinit {
        memory.deallocate()
    }

    /// Records one. Times beyond the capacity are dropped.
    func note(_ time: Int64) {
        guard count < memory.count else { return }
        memory[count] = time
        count += 1
    }

    /// The memory, for a caller that fills `number` elements of it.
    func filled(_ number: Int) -> UnsafeMutablePointer<Int64>? {
        precondition(number <= memory.count)
        count = number
        return memory.baseAddress
    }

    var times: [Int64] { Array(memory[..<count]) }
}
