// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CPeers
import Glibc

/// The other process of a case: this program, started again. It ends with its parent, and after a while in any case.
enum Child {
    static let option = "--child"

    /// Keeps the child on a processor; comes before the part.
    private static let processorOption = "--place"

    /// Has the child send nothing through rings; comes before the part.
    private static let socketsOption = "--sockets"

    /// The descriptor of the socket that a child with bare system calls inherits.
    static let socket: Int32 = 3

    /// The part that a child plays.
    enum Part: String {
        /// Serves ports: strategy, name.
        case ports
        /// Serves a CFMessagePort: name.
        case messagePort = "message-port"
        /// Answers on a bare socket: whether it waits in nested sets, bytes there, bytes back.
        case answer
        /// Reads packets from a bare socket: bytes of each, packets in a batch.
        case sink
        /// Has connections of clients: how many.
        case socketField = "socket-field"
        /// Has clients that all connect at once: to how many listeners, how many clients.
        case connecting
        /// Answers in shared memory, or only reads: whether it answers.
        case memory
        /// Plays a side of another library: its name, an address, bytes there.
        case peer
        /// Is a run of several: the options of that run.
        case run
        /// Keeps a processor busy.
        case busy
        /// Runs a stretch that is counted under ptrace: which stretch.
        case counted
    }

    /// Longer than any case takes, in seconds.
    private static let longestLife: UInt32 = 600

    /// Longer than a run of all cases takes beside busy loops, in seconds.
    private static let longestRun: UInt32 = 7_200

    static func run(_ arguments: [String]) throws {
        bare_bound_life(arguments.first == Part.run.rawValue ? longestRun : longestLife)
        var rest = arguments
        if rest.count > 1, rest[0] == processorOption {
            try Processor(number: Int32(rest[1]) ?? -1).bind()
            rest.removeFirst(2)
        }
        if rest.first == socketsOption {
            setenv("PORT_RING", "never", 1)  // before any code has read it
            rest.removeFirst()
        }
        guard let part = rest.first.flatMap(Part.init) else { throw BenchmarkFailure("no such child") }
        rest.removeFirst()
        try run(part, rest)
    }

    private static func run(_ part: Part, _ rest: [String]) throws {
        func number(_ index: Int) -> Int { rest.indices.contains(index) ? Int(rest[index]) ?? 0 : 0 }
        switch part {
        case .ports: try PortChild(rest).run()
        case .messagePort: try CFMessagePortChild.run(rest.first ?? "")
        case .answer: bare_socket_answer(socket, Int32(number(0)), number(1), number(2))
        case .sink: bare_socket_sink(socket, number(0), UInt32(number(1)))
        case .socketField: bare_socket_field_serve(socket, Int32(number(0)))
        case .connecting: bare_connecting_serve(socket, Int32(number(0)), Int32(number(1)))
        case .memory: try MappedMemory(of: socket).serve(answers: number(0) == 1)
        case .peer: peer_serve(rest[0], rest[1], number(2))
        case .run: try Program.run(rest)
        case .busy: BusyLoops.run()
        case .counted: try CountedStretch.run(rest)
        }
    }

    /// The command that starts a child with ports: this program, or the value of `PORTBENCH_CHILD`, for a child under a
    /// profiler.
    static var command: [String] {
        guard let words = getenv("PORTBENCH_CHILD") else { return ["/proc/self/exe"] }
        return String(cString: words).split(separator: " ").map(String.init)
    }

    /// The arguments that start a child.
    static func arguments(_ part: Part, _ rest: [String], at processor: Processor = .any, rings: Bool = true)
        -> [String]
    {
        [option] + (processor.isAny ? [] : [processorOption, "\(processor.number)"]) + (rings ? [] : [socketsOption])
            + [part.rawValue] + rest
    }
}
