// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Which loans the borrower has returned: memory that it writes, and the lender reads. The word at the place of a loan
// has the number of the last loan there that was returned. So giving memory back is one store, and takes no call.

import PortSystem
import Synchronization

@safe final class ReturnPage: Sendable {
    private static let size = 4096

    private let memory: SharedMemory  // immutable; retained
    // SAFETY: in the memory, which has room for 512 of them; an atomic has the layout of its value.
    private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>  // immutable

    private init(_ memory: SharedMemory) {
        self.memory = memory
        unsafe words = memory.base.assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    /// Makes a page, for the borrower.
    ///
    /// - Returns: the page, and its file for the lender.
    static func make() throws(SystemError) -> (ReturnPage, file: SharedDescriptor) {
        let (memory, file) = try SharedMemory.make(size: size, name: "port-returns")
        return (ReturnPage(memory), file)
    }

    /// Maps the page of a borrower; nil when it is no such page.
    static func map(_ file: SharedDescriptor) throws(SystemError) -> ReturnPage? {
        try SharedMemory.map(file, size: size).map { ReturnPage($0) }
    }

    /// For the lender: whether the loan was returned. What the borrower has read of it was read before.
    func hasReturned(_ number: UInt64) -> Bool {
        let word = unsafe words + LendTable<Int>.place(of: number)
        return unsafe word.pointee.load(ordering: .acquiring) == number
    }

    /// For the borrower: returns the loan.
    func noteReturn(_ number: UInt64) {
        let word = unsafe words + LendTable<Int>.place(of: number)
        unsafe word.pointee.store(number, ordering: .releasing)
    }
}
