// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A port as its source knows it: shared by the source's routines, and not kept alive by them.
final class PortReference: Sendable {
    private struct Reference: @unchecked Sendable {
        // @unchecked: a weak reference may be read by many threads at once; it is set by `init` alone.
        weak var port: MachPort?
    }

    private let reference: Reference  // immutable

    init(_ port: MachPort) {
        reference = Reference(port: port)
    }

    var port: MachPort? { reference.port }
}
