// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

extension PortNameServer {
    /// The port of this process that has a name now. Makes no right to it, so it does not affect no-senders notices.
    ///
    /// - Returns: nil when another process has the name, or none.
    func ownPort(named name: PortName) throws(PortError) -> LocalPort? {
        guard let record = try NameRecord.read(of: name, in: try openDirectory().names) else { return nil }
        return RightsTable.shared.ownPort(at: PortAddress(path: record.socketPath))
    }
}
