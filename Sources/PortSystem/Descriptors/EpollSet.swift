// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// The events to wait for on a descriptor, or those that were seen on it.
package struct EpollEvents: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let readable = EpollEvents(rawValue: SHIM_EPOLLIN)
    package static let writable = EpollEvents(rawValue: SHIM_EPOLLOUT)
    package static let peerClosed = EpollEvents(rawValue: SHIM_EPOLLRDHUP)
    package static let hangUp = EpollEvents(rawValue: SHIM_EPOLLHUP)
    package static let error = EpollEvents(rawValue: SHIM_EPOLLERR)
    /// Reports changes, not the state: for `add` and `modify`.
    package static let edgeTriggered = EpollEvents(rawValue: SHIM_EPOLLET)
    /// A single value, because an array literal of two is assembled by generic code each time.
    package static let hangUpOrError = EpollEvents(rawValue: SHIM_EPOLLHUP | SHIM_EPOLLERR)
}

/// One readiness report: which registration, and what was seen.
package struct EpollReport: Hashable, Sendable {
    package var key: UInt64
    package var events: EpollEvents

    package init(key: UInt64, events: EpollEvents) {
        self.key = key
        self.events = events
    }
}

/// A set of descriptors that can be waited on together (`epoll(7)`), level-triggered unless a member is added with
/// `edgeTriggered`.
///
/// Registrations are distinguished by a key that the caller never reuses, so that a stale report can be recognised.
package struct EpollSet: ~Copyable, Sendable {
    private let descriptor: FileDescriptor

    package static var reportLimit: Int { Tuning.reportLimit }

    package init() throws(SystemError) {
        descriptor = FileDescriptor(owning: try retrying(.epoll_create) { shim_epoll_create() })
    }

    /// The set's own descriptor: readable while any member is ready, so a set can be a member of another set.
    package var raw: CInt { descriptor.raw }

    /// - Throws: EBADF when the descriptor is not open, EPERM when it cannot be waited on (a regular file), EEXIST when it is a
    ///   member.
    package func add(_ member: CInt, _ events: EpollEvents, key: UInt64) throws(SystemError) {
        _ = try retrying(.epoll_ctl) {
            shim_epoll_ctl(descriptor.raw, SHIM_EPOLL_CTL_ADD, member, events.rawValue, key)
        }
    }

    /// Changes the events for which a member is watched.
    package func modify(_ member: CInt, _ events: EpollEvents, key: UInt64) throws(SystemError) {
        _ = try retrying(.epoll_ctl) {
            shim_epoll_ctl(descriptor.raw, SHIM_EPOLL_CTL_MOD, member, events.rawValue, key)
        }
    }

    /// Removes a descriptor. One that was closed has already left the set, so ENOENT and EBADF are no error here.
    package func remove(_ member: CInt) {
        do throws(SystemError) {
            _ = try retrying(.epoll_ctl) { shim_epoll_ctl(descriptor.raw, SHIM_EPOLL_CTL_DEL, member, 0, 0) }
        } catch {
            // Its number may now be another file's: one that no set accepts, or the set itself.
            if ![ENOENT, EBADF, ELOOP].contains(error.code) && !error.isRefusal {
                fatalError(
                    "epoll_ctl cannot remove \(member): \(error). Did other code close the set's descriptor?")
            }
        }
    }

    /// Waits until a member is ready or the deadline has passed.
    ///
    /// - Parameters:
    ///   - deadline: when to give up; a past moment polls once, `.distantFuture` waits without limit.
    ///   - limit: the most reports, up to 64; members beyond it are reported by the next call.
    /// - Returns: the ready members in the kernel's order; empty at the deadline.
    package func wait(until deadline: MonotonicInstant, limit: Int = reportLimit) -> [EpollReport] {
        var reports: [EpollReport] = []
        wait(until: deadline, limit: limit) { reports.append($0) }
        return reports
    }

    /// As above; calls `body` for each ready member after the wait, and allocates nothing.
    package func wait(until deadline: MonotonicInstant, limit: Int = reportLimit, _ body: (EpollReport) -> Void) {
        unsafe withUnsafeTemporaryAllocation(of: shim_epoll_record.self, capacity: limit) { (records) in
            let count: CInt
            do throws(SystemError) {
                count = try unsafe self.count(until: deadline, records)
            } catch {
                fatalError("epoll_wait failed: \(error). Did other code close its descriptor?")
            }
            for index in 0..<Int(count) {
                let record = unsafe records[index]
                body(EpollReport(key: record.data, events: EpollEvents(rawValue: record.events)))
            }
        }
    }

    private func count(
        until deadline: MonotonicInstant, _ records: UnsafeMutableBufferPointer<shim_epoll_record>
    ) throws(SystemError) -> CInt {
        let number = descriptor.raw
        let (base, limit) = (records.baseAddress, CInt(records.count))
        return try Refusals.preciseWait.avoid { () throws(SystemError) in
            try retrying(.epoll_wait) {
                unsafe shim_epoll_wait(number, base, limit, deadline.remainingNanoseconds)
            }
        } otherwise: { () throws(SystemError) in
            while true {
                let count = try retrying(.epoll_wait) {
                    unsafe shim_epoll_wait_milliseconds(number, base, limit, deadline.remainingMilliseconds)
                }
                // The longest wait in milliseconds is 24 days.
                if count != 0 || deadline <= .now { return count }
            }
        }
    }
}

extension MonotonicInstant {
    /// The whole milliseconds until this moment, for `epoll_wait(2)`: rounded up, so that a wait neither ends before it
    /// nor becomes a series of waits of zero; -1 for no limit.
    fileprivate var remainingMilliseconds: CInt {
        let nanoseconds = remainingNanoseconds
        if nanoseconds < 0 { return -1 }
        return CInt(clamping: nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1))
    }
}

/// Waits for one of two descriptors.
///
/// - Returns: what was seen on the second; empty at the deadline, or when only the first is ready.
package func sysPoll(
    _ first: CInt, _ events: EpollEvents, _ second: CInt, _ others: EpollEvents, until deadline: MonotonicInstant
) throws(SystemError) -> EpollEvents {
    var seen: CShort = 0
    let (wanted, other) = (CShort(truncatingIfNeeded: events.rawValue), CShort(truncatingIfNeeded: others.rawValue))
    _ = try retrying(.poll) {
        unsafe shim_ppoll_two(first, wanted, second, other, &seen, deadline.remainingNanoseconds)
    }
    return EpollEvents(rawValue: UInt32(UInt16(bitPattern: seen)))
}

/// Waits for one descriptor.
///
/// - Returns: what was seen; empty at the deadline.
package func sysPoll(_ descriptor: CInt, _ events: EpollEvents, until deadline: MonotonicInstant)
    throws(SystemError) -> EpollEvents
{
    // poll(2) and epoll(7) use the same bits for the events named in EpollEvents.
    var seen: CShort = 0
    let wanted = CShort(truncatingIfNeeded: events.rawValue)
    _ = try retrying(.poll) {
        unsafe shim_ppoll(descriptor, wanted, &seen, deadline.remainingNanoseconds)
    }
    return EpollEvents(rawValue: UInt32(UInt16(bitPattern: seen)))
}
