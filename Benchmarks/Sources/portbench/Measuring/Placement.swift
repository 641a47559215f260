// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Dispatch
import Foundation
import NamedPortServer

/// On which processors the two sides of a contestant run.
///
/// On which processors two threads run that wake each other matters more than how they wake each other. Where the
/// kernel chooses, it may choose differently for ours and for the baseline; a row in which both are bound compares like
/// with like.
enum Placement {
    /// Wherever the kernel puts them.
    case anywhere
    /// Both on the first processor that this program may use.
    case oneProcessor
    /// The measuring side on the first, the other side on the second.
    case twoProcessors

    /// The processor of the measuring side.
    var near: Processor { self == .anywhere ? .any : Processor(number: 0) }

    /// The processor of the other side.
    var far: Processor {
        switch self {
        case .anywhere: .any
        case .oneProcessor: Processor(number: 0)
        case .twoProcessors: Processor(number: 1)
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

    /// Why the row is not possible here; nil when it is.
    var obstacle: String? {
        self == .twoProcessors && bare_processor_count() < 2
            ? "two processors: left out, this program may use one" : nil
    }

    /// How a busy loop waits. With `.adaptive` a thread that is bound to one processor never spins, as it cannot know
    /// that the thread that it waits for has another one.
    var busy: WaitStrategy { self == .anywhere ? .adaptive : .spinning(for: .microseconds(100)) }
}

/// One of the processors that this program may use, or any.
struct Processor: Sendable {
    static let any = Processor(number: -1)

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

    /// Runs `body` here and waits for it: on a separate thread when it is bound, so that the calling thread
    /// never is.
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

    /// As `run`; the run loop of the thread waits in this way meanwhile.
    func run(waiting strategy: WaitStrategy, _ body: @escaping () throws -> Int64) throws -> Int64 {
        try run {
            let loop = ThreadRunLoop.current
            let usual = loop.waitStrategy
            loop.waitStrategy = strategy
            defer { loop.waitStrategy = usual }
            return try body()
        }
    }
}

/// @unchecked: used by the new thread until the semaphore is signalled, and by the waiting thread before and after
/// that.
private final class PlacedWork: @unchecked Sendable {
    private let body: () throws -> Int64
    private(set) var result: Result<Int64, any Error> = .success(0)

    init(_ body: @escaping () throws -> Int64) {
        self.body = body
    }

    func run(at processor: Processor) {
        result = Result {
            try processor.bind()
            return try body()
        }
    }
}
