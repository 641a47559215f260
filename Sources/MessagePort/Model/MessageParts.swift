// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The components of a message. Most messages have one, which is stored inline, without an allocation.
struct MessageParts: Sendable {
    // Not a SmallList, which is a list of objects: a component is a value, whose bytes are moved out without a copy.
    private enum Storage: Sendable {
        case none
        case one(MachMessage.Component)
        case many([MachMessage.Component])
    }

    private var storage: Storage

    init(_ component: MachMessage.Component) {
        storage = .one(component)
    }

    init(_ components: [MachMessage.Component]) {
        storage =
            switch components.count {
            case 0: .none
            case 1: .one(components[0])
            default: .many(components)
            }
    }

    /// None yet, but two or more soon: their memory is allocated at once, with no more room than they need.
    init(roomFor count: Int) {
        var components: [MachMessage.Component] = []
        components.reserveCapacity(count)
        storage = .many(components)
    }

    mutating func append(_ component: MachMessage.Component) {
        switch storage {
        case .none: storage = .one(component)
        case .one(let first): storage = .many([first, component])
        case .many(var components):
            storage = .none  // so that the list is changed in place
            components.append(component)
            storage = .many(components)
        }
    }

    var rightCount: Int {
        switch storage {
        case .one(.right): 1
        case .none, .one: 0
        case .many(let components):
            components.reduce(0) { count, part in if case .right = part { count + 1 } else { count } }
        }
    }

    /// Whether one of them is a receive right.
    var hasReceiveRight: Bool {
        switch storage {
        case .one(.receiveRight): true
        case .none, .one: false
        case .many(let components): components.contains { if case .receiveRight = $0 { true } else { false } }
        }
    }

    /// Whether one of them is memory.
    var hasMemory: Bool {
        switch storage {
        case .one(.memory): true
        case .none, .one: false
        case .many(let components): components.contains { if case .memory = $0 { true } else { false } }
        }
    }

    /// How many bytes there are in them, without those of descriptors and rights.
    var byteCount: Int {
        switch storage {
        case .one(.bytes(let bytes)): bytes.count
        case .one(.memory(let memory)): memory.count
        case .none, .one: 0
        case .many(let components):
            components.reduce(0) { count, component in
                switch component {
                case .bytes(let bytes): count + bytes.count
                case .memory(let memory): count + memory.count
                case .right, .descriptor, .receiveRight: count
                }
            }
        }
    }

    /// The bytes of the only one; nil when there is another, or none.
    var onlyBytes: [UInt8]? { if case .one(.bytes(let bytes)) = storage { bytes } else { nil } }

    /// The memory that is the only one; nil when there is another, or none.
    var onlyMemory: MessageMemory? { if case .one(.memory(let memory)) = storage { memory } else { nil } }

    /// Recycles the memory: the bytes of the only component, for another message.
    mutating func recycleMemory() {
        if let bytes = removeOnlyBytes() { BufferPool.leave(consume bytes) }
    }

    /// Moves the bytes of the only one out; nil, with no change, when there is another, or none.
    mutating func removeOnlyBytes() -> [UInt8]? {
        guard case .one(.bytes) = storage else { return nil }
        var left = Storage.none
        swap(&left, &storage)
        if case .one(.bytes(let bytes)) = consume left { return bytes }
        return nil
    }

    /// Calls the body with each of them, and whether it is the last. Unlike a loop, this counts no references.
    func visit<Failure: Error>(
        _ body: (MachMessage.Component, _ isLast: Bool) throws(Failure) -> Void
    ) throws(Failure) {
        switch storage {
        case .none: break
        case .one(let component): try body(component, true)
        case .many(let components):
            for (index, component) in components.enumerated() { try body(component, index == components.count - 1) }
        }
    }

    var list: [MachMessage.Component] {
        get {
            switch storage {
            case .none: []
            case .one(let component): [component]
            case .many(let components): components
            }
        }
        _modify {
            var components = list
            storage = .none  // so that the list is changed in place
            defer { self = MessageParts(components) }
            yield &components
        }
    }
}

extension MessageParts: RandomAccessCollection {
    var startIndex: Int { 0 }

    var endIndex: Int {
        switch storage {
        case .none: 0
        case .one: 1
        case .many(let components): components.count
        }
    }

    subscript(position: Int) -> MachMessage.Component {
        switch storage {
        case .one(let component) where position == 0: component
        case .many(let components): components[position]
        default: fatalError("A message has no component \(position). Check how many there are first.")
        }
    }
}

extension MachMessage.Component: CustomStringConvertible {
    /// The kind of the part; for bytes, how many.
    public var description: String {
        switch self {
        case .bytes(let bytes): bytes.count == 1 ? "1 byte" : "\(bytes.count) bytes"
        case .right(let right): "\(right)"
        case .descriptor(let descriptor): "descriptor \(descriptor.rawValue)"
        case .receiveRight(let port): "receive right of \(port)"
        case .memory(let memory): "\(memory)"
        }
    }
}

/// What a message has besides its parts, and most messages lack. It takes one word until something is set; so plain
/// messages are small, and cheap to move from thread to thread. A right to reply is stored inline when there is nothing
/// else, as in a request within a process.
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

        init(_ replyTarget: ReplyTarget?) {
            self.replyTarget = replyTarget
            queuedCount = Atomic(0)
            isOfBatch = false
        }

        /// The charge is not copied: it was made once, and is returned once.
        init(copyOf other: Content) {
            replyPort = other.replyPort
            remoteSender = other.remoteSender
            replyTarget = other.replyTarget
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

    private enum Storage: Sendable {
        case none
        case target(ReplyTarget)
        case content(Content)
    }

    private var storage = Storage.none

    private var content: Content? { if case .content(let content) = storage { content } else { nil } }

    init() {}

    /// Sets what a message from another process has; `replyPort` is set already.
    mutating func stamp(remoteSender: PeerIdentity, charge: consuming PeerCharge?, replyTarget: ReplyTarget?) {
        let made = Content(remoteSender: remoteSender, charge: charge, replyTarget: replyTarget)
        made.replyPort = content?.replyPort
        storage = .content(made)
    }

    /// The envelope of the messages of a receive batch, with their common charge.
    init(ofBatch count: Int, from sender: PeerIdentity, _ charge: consuming PeerCharge) {
        storage = .content(Content(ofBatch: count, from: sender, charge))
    }

    /// Whether there is nothing in it.
    var isEmpty: Bool { if case .none = storage { true } else { false } }

    /// Whether the message can be answered.
    var hasReplyRight: Bool {
        switch storage {
        case .none: false
        case .target: true
        case .content(let content): content.replyPort != nil || content.replyTarget != nil
        }
    }

    /// Whether a message of bytes alone is a plain one: it may ask for a reply, but not over a port of its sender, nor
    /// for a confirmation.
    var mayBePlain: Bool {
        switch storage {
        case .none: true
        case .target(let target): target.confirmation == nil
        case .content(let content): content.replyPort == nil && content.replyTarget?.confirmation == nil
        }
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
        get {
            switch storage {
            case .none: nil
            case .target(let target): target
            case .content(let content): content.replyTarget
            }
        }
        set {
            if case .content = storage {
                changeable().replyTarget = newValue
            } else {
                storage = newValue.map { .target($0) } ?? .none
            }
        }
    }

    private mutating func changeable() -> Content {
        let changed: Content
        switch storage {
        case .none: changed = Content(nil)
        case .target(let target): changed = Content(target)
        case .content(var present):
            storage = .none  // so that the object has one reference, if no copy has another
            changed = isKnownUniquelyReferenced(&present) ? present : Content(copyOf: present)
        }
        storage = .content(changed)
        return changed
    }
}
