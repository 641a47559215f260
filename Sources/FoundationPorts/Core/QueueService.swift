// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CFoundationPorts
import Dispatch
import Foundation
import Synchronization

/// Serves a port on a queue: one message at a time, in their order, also on a concurrent queue.
final class QueueService: Sendable {
    // @unchecked: libdispatch's objects may be used on any thread.
    private struct Source: @unchecked Sendable {
        let start: () -> Void
        let cancel: () -> Void
        var release: () -> Void = {}
    }

    private let source: Source  // immutable

    /// Serves nothing until `start`. Its owner calls `cancel`.
    init(_ port: PortSource, on queue: DispatchQueue) {
        let serial = DispatchQueue(label: "CFMessagePort", target: queue)
        let source = DispatchSource.makeReadSource(fileDescriptor: port.descriptor, queue: serial)
        source.setEventHandler { port.handleOne() }
        // Retains the port, whose descriptor this is, until the source no longer uses it.
        source.setCancelHandler { withExtendedLifetime(port) {} }
        self.source = Source(start: source.activate, cancel: source.cancel)
    }

    /// The same on a queue of C's.
    init?(_ port: PortSource, onDispatchQueue queue: UnsafeMutableRawPointer) {
        let info = Unmanaged.passRetained(port)
        let source = fp_queue_source_create(
            port.descriptor, queue, info.toOpaque(),
            { Unmanaged<PortSource>.fromOpaque($0).takeUnretainedValue().handleOne() },
            { Unmanaged<PortSource>.fromOpaque($0).release() })
        guard let source else {
            info.release()
            return nil
        }
        self.source = Source(
            start: { fp_queue_source_start(source) }, cancel: { fp_queue_source_cancel(source) },
            release: { fp_queue_source_release(source) })
    }

    /// Serves messages from now on, unless it was cancelled.
    func start() { source.start() }

    /// Serves none from now on, but for one that is being served.
    func cancel() {
        source.cancel()
        // What was never started would not be released.
        source.start()
    }

    deinit { source.release() }
}
