// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What is written on a message besides its parts, and most messages have not. It takes a word until something is set; so
/// plain messages are small, which is what moving them from thread to thread costs.
///
/// It is a value: copies share one object until one of them is changed.
struct MessageEnvelope: Sendable {
    // @unchecked: it is changed only while one envelope alone has it.
    private final class Content: @unchecked Sendable {
        var replyPort: SendRight?
        var remoteSender: PeerIdentity?
        // Unchecked: it is changed only while one envelope alone has the object. To check costs as much as the account.
        @exclusivity(unchecked) var charge: PeerCharge?
        var replyTarget: ReplyTarget?

        init(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
            self.remoteSender = remoteSender
            unsafe self.charge = charge
            self.replyTarget = replyTarget
        }

        /// The charge stays where it is: it was taken once, and goes once.
        init(copyOf other: Content? = nil) {
            replyPort = other?.replyPort
            remoteSender = other?.remoteSender
            replyTarget = other?.replyTarget
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

    /// Whether nothing was ever set.
    var isEmpty: Bool { content == nil }

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

    /// The message takes up nothing any more; when copies share the object, as soon as they are gone.
    mutating func dropCharge() {
        if isCharged { unsafe changeable().charge = nil }
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
