// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Which of a program's handlers a loop called: what traces and reports of busy loops show.
public struct RunLoopCallout: Sendable, Hashable, CustomStringConvertible {
    /// What was called.
    public enum Kind: UInt8, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        /// The handler of an observer.
        case observer
        /// The handler of a timer.
        case timer
        /// A block.
        case block
        /// The perform routine of a custom source (version 0).
        case customSource
        /// The perform routine of a port-based source (version 1).
        case portSource
        /// A piece of the code of an actor or a task.
        case job
        /// The main dispatch queue.
        case mainDispatchQueue

        /// The kind in words.
        public var description: String {
            switch self {
            case .observer: "observer"
            case .timer: "timer"
            case .block: "block"
            case .customSource: "custom source"
            case .portSource: "port-based source"
            case .job: "job"
            case .mainDispatchQueue: "main dispatch queue"
            }
        }
    }

    /// What was called.
    public let kind: Kind
    /// The name that it was given; nil when it has none.
    public let name: String?
    /// The number that its description shows; nil for blocks, jobs and the main dispatch queue, which have none.
    public let number: UInt64?

    init(_ kind: Kind, _ name: String?, _ id: ItemID? = nil) {
        self.kind = kind
        self.name = name
        number = id?.rawValue
    }

    /// What was called, its name when it has one, and its number: as the item describes itself.
    public var description: String {
        ([kind.description] + [name?.debugDescription, number.map { "#\($0)" }].compactMap { $0 })
            .joined(separator: " ")
    }
}
