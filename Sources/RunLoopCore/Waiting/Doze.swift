// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem

// @unchecked: only the loop's thread sleeps.
/// How a loop sleeps on words in memory and on a set of descriptors at once: what that takes is made when it is first needed, and
/// not asked for again where the system does not have it, or forbids it.
@safe final class Doze: @unchecked Sendable {
    private var combined: CombinedSleep?  // loop thread
    /// The system does not have it, or forbids it.
    private(set) var isRefused = CombinedSleep.isUnwanted  // loop thread
    private let forkCount = sysForkCount()  // immutable

    /// Sleeps until a descriptor of the set is ready, a word is woken, or the deadline has come; perhaps not so long.
    ///
    /// - Returns: whether a descriptor is ready; nil, without a sleep, where the system refuses it.
    func sleep(on words: ShortList<SharedWord>, watching set: CInt, until deadline: MonotonicInstant) -> Bool? {
        do throws(SystemError) {
            // A forked child shares what its parent sleeps on.
            if sysForkCount() != forkCount { throw SystemError(EPERM) }
            if combined == nil { combined = try CombinedSleep(watching: set) }
            for word in words { combined?.want(word) }
            return try combined?.sleep(until: deadline)
        } catch {
            combined = nil
            // Memory and descriptors may be there the next time.
            isRefused = ![EMFILE, ENFILE, ENOMEM].contains(error.code)
            return nil
        }
    }
}
