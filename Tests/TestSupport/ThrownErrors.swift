// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort

/// The error that `body` throws; nil when it throws none.
package func portError(_ body: () throws(PortError) -> Void) -> PortError? {
    do throws(PortError) {
        try body()
        return nil
    } catch {
        return error
    }
}

/// The port error that `body` throws; nil when it throws none, or another.
///
/// Not a closure of typed throws: swiftc 6.3.1 sometimes gives the error of the call before, or crashes, for such
/// closures.
package func failure(_ body: () throws -> Void) -> PortError? {
    do {
        try body()
        return nil
    } catch {
        return error as? PortError
    }
}
