// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// What is written on a message besides its parts, and most messages have not. It takes a word until something is set;
/// so plain messages are small, which is what moving them from thread to thread costs.
///
/// It is a value: copies share one object until one of them is changed.
///
/// The messages of a burst share one from the beginning. It holds what they all take up in their sender's account, which
/// is given back when the last of them is taken, or gone; each leaves it when it is taken.
struct MessageEnvelope: Sendable {
    // @unchecked: it is changed only while one envelope alone has it; the charge of a burst by the last who leaves it.
    private final class Content: @unchecked Sendable {
        var replyPort: SendRight?
        var remoteSender: PeerIdentity?
        // Unchecked: it is changed only while one envelope alone has the object. To check costs as much as the account.
        @exclusivity(unchecked) var charge: PeerCharge?
        var replyTarget: ReplyTarget?
        /// Of a burst: what its messages have written on them when they are taken, and how many are not.
        let sequel: Content?  // immutable
        let untaken: Atomic<Int>

        init(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
            self.remoteSender = remoteSender
            unsafe self.charge = charge
            self.replyTarget = replyTarget
            sequel = nil
            untaken = Atomic(0)
        }

        init(burstOf count: Int, followedBy sequel: Content) {
            remoteSender = sequel.remoteSender
            self.sequel = sequel
            untaken = Atomic(count)
        }

        /// The charge stays where it is: it was taken once, and goes once.
        init(copyOf other: Content? = nil) {
            replyPort = other?.replyPort
            remoteSender = other?.remoteSender
            replyTarget = other?.replyTarget
            sequel = nil
            untaken = Atomic(0)
        }

        var isCharged: Bool {
            switch unsafe charge {
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

    /// What is written on the messages of a burst, as long as they are not taken; then it is this.
    ///
    /// - Parameters:
    ///   - count: how many messages there will be.
    ///   - charge: what they take up together.
    /// - Returns: what all of them share.
    func madeForBurst(of count: Int, _ charge: consuming PeerCharge) -> MessageEnvelope {
        var made = MessageEnvelope()
        made.content = content.map { Content(burstOf: count, followedBy: $0) }
        unsafe made.content?.charge = .some(charge)
        return made
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

    /// The message takes up nothing any more; when copies share the object, as soon as they are gone. Of a burst each message
    /// says this once: not a copy of one that is still queued.
    mutating func dropCharge() {
        if let sequel = content?.sequel {
            leaveBurst(for: sequel)
        } else if isCharged {
            unsafe changeable().charge = nil
        }
    }

    private mutating func leaveBurst(for sequel: Content) {
        guard let burst = content else { return }
        content = sequel
        if burst.untaken.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { unsafe burst.charge = nil }
    }

    var replyTarget: ReplyTarget? {
        get { content?.replyTarget }
        set { if newValue != nil || content != nil { changeable().replyTarget = newValue } }
    }

    private mutating func changeable() -> Content {
        if isKnownUniquelyReferenced(&content), let content, content.sequel == nil { return content }
        let made = Content(copyOf: content)
        content = made
        return made
    }
}
