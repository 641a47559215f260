// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Dispatch
import Foundation
import NamedPortServer

/// On which processors the two sides of a contestant run.
///
/// Where two threads are that wake each other decides more than what they do to wake each other. Where the kernel chooses, it
/// may choose differently for ours and for the baseline; a row in which both are bound compares the same.
enum Placement {
    /// Wherever the kernel puts them.
    case anywhere
    /// Both on the first processor that this program may use.
    case oneProcessor
    /// The side that measures on the first, the other one on the second.
    case twoProcessors

    /// Where the side is that measures.
    var near: Place { self == .anywhere ? .any : Place(number: 0) }

    /// Where the other side is.
    var far: Place {
        switch self {
        case .anywhere: .any
        case .oneProcessor: Place(number: 0)
        case .twoProcessors: Place(number: 1)
        }
    }

    /// The name of the row.
    var variant: String? {
        switch self {
        case .anywhere: nil
        case .oneProcessor: "one processor"
        case .twoProcessors: "two processors"
        }
    }

    /// Why there cannot be such a row here; nil when there can.
    var obstacle: String? {
        self == .twoProcessors && bare_place_count() < 2 ? "two processors: left out, this program may use one" : nil
    }

    /// How a loop waits that is to be busy. With `.adaptive` a thread that is bound to one processor never spins, as it cannot
    /// know that the thread that it waits for has another one.
    var busy: WaitStrategy { self == .anywhere ? .adaptive : .spinning(for: .microseconds(100)) }
}

/// One of the processors that this program may use, or any.
struct Place: Sendable {
    static let any = Place(number: -1)

    /// Counted from 0; -1 for any.
    let number: Int32

    var isAny: Bool { number < 0 }

    /// Keeps the calling thread here.
    func bind() throws {
        let code = bare_bind(number)
        if code != 0 { throw BenchmarkFailure("no processor \(number) to bind a thread to: errno \(code)") }
    }

    /// Keeps a run loop's thread here.
    func bind(_ thread: ResidentThread) throws {
        if !isAny { try thread.performAndWait(within: .seconds(10)) { try bind() } }
    }

    /// Does something here and waits for it: on a thread of its own when that is bound, so that the calling one never is.
    func run(_ body: @escaping () throws -> Int64) throws -> Int64 {
        if isAny { return try body() }
        let work = PlacedWork(body)
        let ended = DispatchSemaphore(value: 0)
        Thread {
            work.run(at: self)
            ended.signal()
        }.start()
        ended.wait()
        return try work.result.get()
    }
}

/// @unchecked: used by the new thread until the semaphore is signalled, and by the one that waits for it before and after that.
private final class PlacedWork: @unchecked Sendable {
    private let body: () throws -> Int64
    private(set) var result: Result<Int64, any Error> = .success(0)

    init(_ body: @escaping () throws -> Int64) {
        self.body = body
    }

    func run(at place: Place) {
        result = Result {
            try place.bind()
            return try body()
        }
    }
}
