// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// The variables with which a supervisor describes the sockets that it hands to a process (sd_listen_fds(3)).
package struct SupervisorVariables: Hashable, Sendable {
    package static let firstDescriptor: CInt = 3
    /// The variables: for which process, how many descriptors, and their names.
    package static let all = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]

    /// The names of the descriptors, from the first on; empty for one without a name.
    package let names: [String]

    /// Reads the variables' values; nil when they are not set, or meant for another process than `own`.
    ///
    /// - Throws: `activationInvalid` when they are malformed.
    package init?(process: String?, count: String?, names: String?, own: Int32) throws(PortError) {
        guard let process, let count else { return nil }
        guard let meant = Int32(process) else { throw PortError(.activationInvalid, subject: .reason(.notProcess)) }
        if meant != own { return nil }
        guard let number = Int(count), (0...65_536).contains(number) else {
            throw PortError(.activationInvalid, subject: .reason(.notCount))
        }
        guard let names else {
            self.names = Array(repeating: "", count: number)
            return
        }
        let parts = number == 0 ? [] : names.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == number else { throw PortError(.activationInvalid, subject: .reason(.wrongNames)) }
        self.names = parts.map { String($0) ?? "" }
    }

    /// Reads the environment of this process as it is now.
    package static func current() throws(PortError) -> SupervisorVariables? {
        try SupervisorVariables(
            process: sysEnvironment(all[0]), count: sysEnvironment(all[1]), names: sysEnvironment(all[2]),
            own: sysProcessID())
    }
}

extension PortError.StaticReason {
    fileprivate static let notProcess = Self("LISTEN_PID is not a process id")
    fileprivate static let notCount = Self("LISTEN_FDS is not a number of descriptors")
    fileprivate static let wrongNames = Self("LISTEN_FDNAMES does not name as many descriptors as LISTEN_FDS counts")
}
