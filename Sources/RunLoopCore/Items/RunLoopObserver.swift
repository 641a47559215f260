// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// Is called at chosen points of a loop's runs.
///
/// - Important: Thread safety: any thread. The handler is called on the loop's thread.
public final class RunLoopObserver: Sendable {
    /// What an observer is called with.
    public typealias Handler = @Sendable (RunLoopObserver, RunLoopActivity) -> Void

    let id = ItemID()
    let handler: Handler
    let membership = Mutex(LoopMembership())  // comes before the loop's lock

    /// What it is called in traces, reports and descriptions; nil when it was given no name.
    public let name: String?
    /// The activities that it observes.
    public let activities: RunLoopActivity
    /// Whether it stays after its first call.
    public let repeats: Bool
    /// Observers of one activity are called lowest first, equal ones in the order in which they were added.
    public let order: Int

    /// Makes an observer, to be added to a loop.
    ///
    /// An observer whose handler is being called is skipped by runs inside that handler.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - activities: when to be called.
    ///   - repeats: false to be called once, and to be invalid afterwards.
    ///   - order: lower ones are called first.
    ///   - handler: what to call, with the observer and the one activity.
    public init(
        name: String? = nil, activities: RunLoopActivity, repeats: Bool = true, order: Int = 0,
        _ handler: @escaping Handler
    ) {
        self.name = name
        self.activities = activities
        self.repeats = repeats
        self.order = order
        self.handler = handler
    }

    /// Whether it may still be called.
    public var isValid: Bool { membership.withLock { $0.isValid } }

    /// Removes the observer from everything, permanently. A call that is in progress continues.
    public func invalidate() {
        for loop in membership.withLock({ $0.invalidate() }) ?? [] {
            _ = loop.removeItem(id, from: nil)
        }
    }

    func add(to loop: ThreadRunLoop, _ mode: RunLoopMode) {
        membership.withLock { _ = $0.add(.observer(self), to: loop, mode) }
    }

    func remove(from loop: ThreadRunLoop, _ mode: RunLoopMode) {
        membership.withLock { _ = $0.remove(id, from: loop, mode) }
    }
}

extension RunLoopObserver: Hashable {
    /// Whether both are the same observer.
    public static func == (left: RunLoopObserver, right: RunLoopObserver) -> Bool { left === right }

    /// Hashes the observer's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RunLoopObserver: CustomStringConvertible {
    /// What it is, its name when it has one, and its number.
    public var description: String { id.description(of: "observer", named: name) }
}
