// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What is written on a message besides its parts, and most messages have not. It takes a word until something is set;
/// so plain messages are small, which is what moving them from thread to thread costs.
///
/// It is a value: copies share one object until one of them is changed.
///
/// The messages of a burst share one from the beginning. It holds what they all take up in their sender's account, which
/// is given back when the last of them is taken, or all are gone.
struct MessageEnvelope: Sendable {
    // @unchecked: it is changed only while one envelope alone has it; the charge of a burst by the last who leaves it.
    private final class Content: @unchecked Sendable {
        var replyPort: SendRight?
        var remoteSender: PeerIdentity?
        // Unchecked: it is changed only while one envelope alone has the object. To check costs as much as the account.
        @exclusivity(unchecked) var charge: PeerCharge?
        var replyTarget: ReplyTarget?
        /// Of a burst: how many of its messages were not taken.
        let untaken: Atomic<Int>
        let isOfBurst: Bool  // immutable

        init(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
            self.remoteSender = remoteSender
            unsafe self.charge = charge
            self.replyTarget = replyTarget
            untaken = Atomic(0)
            isOfBurst = false
        }

        init(ofBurst count: Int, from sender: PeerIdentity, _ charge: consuming PeerCharge) {
            remoteSender = sender
            unsafe self.charge = .some(charge)
            untaken = Atomic(count)
            isOfBurst = true
        }

        /// The charge stays where it is: it was taken once, and goes once.
        init(copyOf other: Content? = nil) {
            replyPort = other?.replyPort
            remoteSender = other?.remoteSender
            replyTarget = other?.replyTarget
            untaken = Atomic(0)
            isOfBurst = false
        }

        var isCharged: Bool {
            if isOfBurst { return untaken.load(ordering: .acquiring) > 0 }
            return switch unsafe charge {
            case .none: false
            case .some: true
            }
        }
    }

    private var content: Content?

    /// Nothing is set.
    init() {}

    /// What is written on a message that came from another process; `replyPort` is written already.
    mutating func stamp(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
        let made = Content(remoteSender: remoteSender, charge: charge, replyTarget: replyTarget)
        made.replyPort = content?.replyPort
        content = made
    }

    /// What is written on the messages of a burst.
    ///
    /// - Parameters:
    ///   - count: how many messages there are.
    ///   - sender: their sender.
    ///   - charge: what they take up together.
    init(ofBurst count: Int, from sender: PeerIdentity, _ charge: consuming PeerCharge) {
        content = Content(ofBurst: count, from: sender, charge)
    }

    /// Whether nothing was ever set.
    var isEmpty: Bool { content == nil }

    /// Whether somebody may answer the message.
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

    /// Whether the message takes up something in its sender's account.
    var isCharged: Bool { content?.isCharged ?? false }

    /// The message takes up nothing any more; when copies share the object, as soon as they are gone. A message of a burst
    /// leaves that instead.
    mutating func dropCharge() {
        if let content, !content.isOfBurst, content.isCharged { unsafe changeable().charge = nil }
    }

    /// A message of the burst is taken: each says this once, and not a copy of one that is still queued.
    func leaveBurst() {
        guard let content else { return }
        if content.untaken.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { unsafe content.charge = nil }
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
