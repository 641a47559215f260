// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What one end of a connection has lent to the other. Each loan has a number, counted from 1; its place on the return
/// page is that number modulo 512. A number whose place is taken is left out.
///
/// Decides, does nothing else.
struct LendTable<Loan: Sendable>: Sendable {
    /// How many loans there may be at a time.
    static var limit: Int { 512 }

    private struct Entry {
        let number: UInt64
        let loan: Loan
    }

    /// In no order.
    private var entries: [Entry] = []
    /// By place: where the loan is in `entries`, plus one. Empty before the first loan.
    private var positions: [UInt16] = []
    private var lastNumber: UInt64 = 0

    var count: Int { entries.count }
    var isFull: Bool { count >= Self.limit }

    /// Adds a loan.
    ///
    /// - Returns: its number; nil when there are too many.
    mutating func add(_ loan: Loan) -> UInt64? {
        if isFull { return nil }
        if positions.isEmpty { positions = Array(repeating: 0, count: Self.limit) }
        repeat { lastNumber += 1 } while positions[Self.place(of: lastNumber)] != 0
        entries.append(Entry(number: lastNumber, loan: loan))
        positions[Self.place(of: lastNumber)] = UInt16(entries.count)
        return lastNumber
    }

    func contains(_ number: UInt64) -> Bool { position(of: number) != nil }

    /// Removes a loan.
    ///
    /// - Returns: nil when there is none of that number any more.
    mutating func remove(_ number: UInt64) -> Loan? { position(of: number).map { removeEntry(at: $0) } }

    /// Removes the last loan before a position whose number was returned; the position is moved there. What is removed from
    /// one position takes the last loan's, so a scan from the end meets each loan once.
    mutating func removeLast(before position: inout Int, where isReturned: (UInt64) -> Bool) -> Loan? {
        position = min(position, entries.count)
        while position > 0 {
            position -= 1
            if isReturned(entries[position].number) { return removeEntry(at: position) }
        }
        return nil
    }

    /// Removes the loans whose numbers were returned.
    mutating func removeAll(where isReturned: (UInt64) -> Bool) -> [Loan] {
        var removed: [Loan] = []
        for position in entries.indices.reversed() where isReturned(entries[position].number) {
            removed.append(removeEntry(at: position))
        }
        return removed
    }

    private func position(of number: UInt64) -> Int? {
        if entries.isEmpty { return nil }
        let position = Int(positions[Self.place(of: number)]) - 1
        return position >= 0 && entries[position].number == number ? position : nil
    }

    /// The last one takes its position.
    private mutating func removeEntry(at position: Int) -> Loan {
        let entry = entries[position]
        positions[Self.place(of: entry.number)] = 0
        let last = entries.removeLast()
        if last.number != entry.number {
            entries[position] = last
            positions[Self.place(of: last.number)] = UInt16(position + 1)
        }
        return entry.loan
    }

    static func place(of number: UInt64) -> Int { Int(number % UInt64(limit)) }
}
