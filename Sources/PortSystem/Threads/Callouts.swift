// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims

/// Runs a program's code where the thread may hold a lock of this library further up its stack: such code waits until
/// the lock is released, in order.
///
/// It is code that runs in passing: the release of a handler, which may end objects of the program, and the resumption
/// of a task, which calls the program's executor. What a thread does under the lock may lead there over many calls, also
/// through `deinit`.
package enum Callouts {
    /// The thread is about to acquire a lock under which no callout may run; may be nested.
    package static func hold() { shim_hold_callouts() }

    /// The thread has released the lock: runs what waits, unless it holds another one.
    package static func release() {
        if shim_release_callouts() { runWaiting() }
    }

    /// Calls `callout`, now, or when the thread has released its locks.
    package static func run(_ callout: @escaping @Sendable () -> Void) {
        if !shim_holds_callouts() { return callout() }
        if let list = waiting.value { list.callouts.append(callout) } else { waiting.value = List(callout) }
        shim_set_callouts_wait(true)
    }

    /// Releases the objects, now, or when the thread has released its locks. The caller's own references end with its
    /// variables.
    package static func drop<Object: Sendable>(_ objects: [Object]) {
        if !objects.isEmpty { run { withExtendedLifetime(objects) {} } }
    }

    private final class List {
        var callouts: [@Sendable () -> Void]

        init(_ first: @escaping @Sendable () -> Void) { callouts = [first] }
    }

    private static let waiting = ThreadLocal<List>()

    private static func runWaiting() {
        shim_set_callouts_wait(false)
        guard let list = waiting.value else { return }
        waiting.value = nil
        for callout in list.callouts { callout() }
    }
}
