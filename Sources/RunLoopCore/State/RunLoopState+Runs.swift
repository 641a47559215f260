// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension RunLoopState {
    /// A run that is in progress.
    struct ActiveRun: Sendable {
        var mode: Int
        /// Whether a stop applies to it, or to the run below.
        var takesStops: Bool
        var isStopped = false
    }

    /// How a run starts.
    enum RunStart: Equatable {
        case runs(Int)
        case finished, stopped
    }

    /// Begins a run, unless its mode is unknown or empty. A pending stop ends such a run too.
    ///
    /// - Parameters:
    ///   - mode: the mode.
    ///   - performing: the version-1 sources inside whose perform routines it begins.
    /// - Returns: how it starts.
    mutating func beginRun(in mode: RunLoopMode, inside performing: [ItemID]) -> RunStart {
        if mode == .common { return .finished }
        let isStopped = takePendingStop()
        guard let index = knownIndex(of: mode), !isEmpty(index) else { return isStopped ? .stopped : .finished }
        begin(ActiveRun(mode: index, takesStops: true, isStopped: isStopped), inside: performing)
        return .runs(index)
    }

    /// Begins a run that leaves stops to the run below, whatever its mode contains.
    mutating func beginConditionalRun(in mode: RunLoopMode, inside performing: [ItemID]) -> Int {
        let index = makeIndex(of: mode)
        begin(ActiveRun(mode: index, takesStops: false), inside: performing)
        return index
    }

    private mutating func begin(_ run: ActiveRun, inside performing: [ItemID]) {
        runs.append(run)
        // A source that is being performed is checked for more afterwards; a run inside it cannot wait for that.
        for id in performing {
            guard let number = seats.seat(of: id, in: run.mode), let order = seats.list[number].source?.order
            else { continue }
            modes[run.mode].ready.insert(number, order: order, &seats)
        }
    }

    /// Ends the innermost run. A stop that it did not use goes to the run below.
    mutating func endRun() {
        if runs.popLast()?.isStopped == true { stop() }
    }

    /// Stops the innermost run that accepts stops, or else the next run.
    mutating func stop() {
        if let index = runs.lastIndex(where: \.takesStops) {
            runs[index].isStopped = true
        } else {
            stopIsPending = true
        }
    }

    /// Whether the innermost run was stopped.
    var isStopped: Bool { runs.last?.isStopped ?? false }

    /// Consumes the stop of the innermost run.
    mutating func takeStop() -> Bool {
        guard isStopped else { return false }
        runs[runs.count - 1].isStopped = false
        return true
    }

    private mutating func takePendingStop() -> Bool {
        if runs.contains(where: \.takesStops) { return false }
        defer { stopIsPending = false }
        return stopIsPending
    }
}
