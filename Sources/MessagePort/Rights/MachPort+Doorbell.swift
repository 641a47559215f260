// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension MachPort {
    /// A descriptor that is readable while messages wait: see ``PortDoorbell``. A port has one, which stays until the
    /// port is gone.
    ///
    /// - Returns: the doorbell; the same each time.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``; ``PortError/Code/descriptorLimit``
    ///   and ``PortError/Code/systemCallFailed`` when the kernel gives no descriptor.
    public func doorbell() throws(PortError) -> PortDoorbell {
        try core.doorbell()
    }
}
