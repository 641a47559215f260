// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
public import PortSystem

extension PortNameServer {
    /// A name, the process that holds it, and since when.
    ///
    /// Printed, it is one line: `org.example.greeter: process 4711, since 2026-11-21T14:37:10Z`.
    public struct Registration: Hashable, Sendable, CustomStringConvertible {
        /// The name.
        public let name: String
        /// The process that holds it.
        public let owner: Int32
        /// When it was registered, in whole seconds.
        public let since: MonotonicInstant
        /// When the owner started: the time from the machine's start, in the kernel's ticks. With ``owner`` it
        /// distinguishes a process from another that gets the same id later. Nil when it cannot be known, for example
        /// in another PID namespace.
        public let ownerStart: Duration?

        init(name: String, owner: Int32, since: MonotonicInstant, ownerStart: Duration?) {
            self.name = name
            self.owner = owner
            self.since = since
            self.ownerStart = ownerStart
        }

        /// Reads when the owner started.
        init(_ name: PortName, _ record: NameRecord) {
            let (seconds, overflow) = record.since.multipliedReportingOverflow(by: 1_000_000_000)
            self.init(
                name: name.string, owner: record.owner,
                since: overflow ? .distantFuture : MonotonicInstant(nanoseconds: seconds),
                ownerStart: sysProcessStart(record.owner))
        }

        /// For how long the name has been held.
        public var age: Duration { since.duration(to: .now) }

        /// When the name was registered, by the wall clock as it is set now.
        public var sinceTime: UTCTime { UTCTime(sysWallTime(before: { age })) }

        /// When the owner started, by the wall clock as it is set now.
        public var ownerStartTime: UTCTime? {
            ownerStart.map { start in UTCTime(sysWallTime(before: { sysTimeSinceBoot() - start })) }
        }

        /// Name, owner, and since when.
        public var description: String { "\(name): process \(owner), since \(sinceTime)" }
    }
}
