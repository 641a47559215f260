// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What a message has besides its parts, and most messages lack. It takes one word until something is set; so plain
/// messages are small, and cheap to move from thread to thread.
///
/// It is a value: copies share one object until one of them is changed.
///
/// The messages of a receive batch share one from the beginning. It holds their common charge to their sender's
/// account, which is returned when the last of them is dequeued, or all are released.
struct MessageEnvelope: Sendable {
    // @unchecked: it is changed only while a single envelope refers to it; the charge of a batch by the last message
    // that leaves it.
    private final class Content: @unchecked Sendable {
        var replyPort: SendRight?
        var remoteSender: PeerIdentity?
        // Unchecked: it is changed only while a single envelope refers to the object. A check costs as much as the
        // account.
        @exclusivity(unchecked) var charge: PeerCharge?
        var replyTarget: ReplyTarget?
        /// Of a receive batch: how many of its messages were not dequeued.
        let queuedCount: Atomic<Int>
        let isOfBatch: Bool  // immutable

        init(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
            self.remoteSender = remoteSender
            unsafe self.charge = charge
            self.replyTarget = replyTarget
            queuedCount = Atomic(0)
            isOfBatch = false
        }

        init(ofBatch count: Int, from sender: PeerIdentity, _ charge: consuming PeerCharge) {
            remoteSender = sender
            unsafe self.charge = .some(charge)
            queuedCount = Atomic(count)
            isOfBatch = true
        }

        /// The charge is not copied: it was made once, and is returned once.
        init(copyOf other: Content? = nil) {
            replyPort = other?.replyPort
            remoteSender = other?.remoteSender
            replyTarget = other?.replyTarget
            queuedCount = Atomic(0)
            isOfBatch = false
        }

        var isCharged: Bool {
            if isOfBatch { return queuedCount.load(ordering: .acquiring) > 0 }
            return switch unsafe charge {
            case .none: false
            case .some: true
            }
        }
    }

    private var content: Content?

    init() {}

    /// Sets what a message from another process has; `replyPort` is set already.
    mutating func stamp(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
        let made = Content(remoteSender: remoteSender, charge: charge, replyTarget: replyTarget)
        made.replyPort = content?.replyPort
        content = made
    }

    /// The envelope of the messages of a receive batch, with their common charge.
    init(ofBatch count: Int, from sender: PeerIdentity, _ charge: consuming PeerCharge) {
        content = Content(ofBatch: count, from: sender, charge)
    }

    /// Whether nothing was ever set.
    var isEmpty: Bool { content == nil }

    /// Whether the message can be answered.
    var hasReplyRight: Bool {
        guard let content else { return false }
        return content.replyPort != nil || content.replyTarget != nil
    }

    var replyPort: SendRight? {
        get { content?.replyPort }
        set { if newValue != nil || content != nil { changeable().replyPort = newValue } }
    }

    var remoteSender: PeerIdentity? {
        get { content?.remoteSender }
        set { if newValue != nil || content != nil { changeable().remoteSender = newValue } }
    }

    /// Whether the message is charged to its sender's account.
    var isCharged: Bool { content?.isCharged ?? false }

    /// Returns the message's charge; when copies share the object, as soon as they are gone. A message of a receive
    /// batch leaves the batch instead.
    mutating func dropCharge() {
        if let content, !content.isOfBatch, content.isCharged { unsafe changeable().charge = nil }
    }

    /// Notes that a message of the batch was dequeued: called once for each, and not for a copy of one that is still
    /// queued.
    func leaveBatch() {
        guard let content else { return }
        if content.queuedCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            unsafe content.charge = nil
        }
    }

    var replyTarget: ReplyTarget? {
        get { content?.replyTarget }
        set { if newValue != nil || content != nil { changeable().replyTarget = newValue } }
    }

    private mutating func changeable() -> Content {
        if isKnownUniquelyReferenced(&content), let content { return content }
        let made = Content(copyOf: content)
        content = made
        return made
    }
}
