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
        var charge: PeerCharge?
        var replyTarget: ReplyTarget?

        init(remoteSender: PeerIdentity, charge: PeerCharge?, replyTarget: ReplyTarget?) {
            (self.remoteSender, self.charge, self.replyTarget) = (remoteSender, charge, replyTarget)
        }

        init(copyOf other: Content? = nil) {
            replyPort = other?.replyPort
            remoteSender = other?.remoteSender
            charge = other?.charge
            replyTarget = other?.replyTarget
        }
    }

    private var content: Content?

    /// Nothing is set.
    init() {}

    /// What is written on a message that came from another process; `replyPort` is written already.
    mutating func stamp(remoteSender: PeerIdentity, charge: PeerCharge?, replyTarget: ReplyTarget?) {
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

    var charge: PeerCharge? {
        get { content?.charge }
        set { if newValue != nil || content != nil { changeable().charge = newValue } }
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
