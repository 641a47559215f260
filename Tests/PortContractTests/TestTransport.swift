// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// One contract, four transports: each test is written once and runs over all of them. What the test does itself it does
// in this process. What it has the other side do is behind `FarPort` and `FarSender`: in memory, over a socket and over
// rings that side is in this process too, and over the last transport in another, `port-test-peer far`. Handlers of the
// far side have names (`Service`), because closures do not travel.
//
// Tests whose port lives on run over a right to its name as well (`withName`).
//
// What runs in one process only, and why. In suites that run across processes too:
//
//   ArrivalContract         raw packets, and a connection's state: the order in which things arrive is made by hand
//   AsyncSendContract       `stress`: its receiver is a thread of the test; `stressOfFarPort` is the same across
//                           processes
//   CancellationContract    the handler's loop, raw packets, and a port in memory before one at a socket
//   CheckInContract         the worker as a thread; `workerOfFarSide` is the same across processes
//   ContentContract         how objects describe themselves
//   DeathContract           handlers of an invalidation and when they are released: closures of the port's own process
//   DeathNoticeContract     races inside one connection, and what a loop counts as handled
//   DeliveryContract        a type; a peer that the test ends (KilledProcessContract kills a real one)
//   DescriptorContract      exact counts of one process; more descriptors than a packet carries
//   DoorbellContract and    a queue in memory; messages in pieces that are sent by hand
//   DoorbellPromiseContract
//   MessageContract         a body that only memory accepts
//   MoveContract            receive rights within a process; a port that has gone
//   NoticeContract          copies of one right; notices that end with their loop's thread; rights in memory
//   PendingReplyContract    raw packets
//   QueueChangeContract     the order of waiting senders; fairness between the port's own process and others
//   QueueContract           the order of waiting senders, which only memory keeps across rights
//   ReceiveContract         threads that wait at one port; `stressOfFarPort` is `stress` across processes
//   ReplyRightContract      rights that are never sent; a relay whose requester has no address
//   RequestContract         a request to the requester's own loop; a loop that its server stops; `lastReplyOfFarSide`
//                           is `lastReply` across processes
//   RightContract           the table of rights of one process
//   SchedulingContract      the end of a loop's thread under a request; a race of two loops
//   SequenceContract        a port that gets its address late; a check of the queue
//   SharedRepliesContract   a race inside one connection
//   WithdrawnNoticeContract what a withdrawn handler retained; `withdrawnOfFarPort` is the same across processes
//
// And whole suites:
//
//   AddressRaceTests, ConcurrentChangeTests     races of threads that are forced from inside
//   DeadlockContract                            it is about the threads of one process
//   DescriptorLimitTests, FaultTests            the limit and the faults are this process's; the suites of faulty
//                                               servers and clients in NamedPortServerTests have them in another
//   ForkTests                                   its children are their own processes
//   HostilePeerTests, SendBacklogTests,         the peer writes packets by hand; WirePeerTests, StrangersTests and
//   PeerLimitsTests, PeerPolicyTests,           StoppedServerTests in NamedPortServerTests have other processes
//   BrokenOffMessageTests, ReplyWaitTests
//   ManyPortsTests                              memory and descriptors of one process; ManyClientsTests has many
//   StressTests (StressPort)                    ports move between loops of the test while others send
//
// Over rings a test runs in one process only: the memory is mapped twice there, as two processes would map it, and both
// ends know it only by its bytes. What is different across processes is their end: the suites of killed processes have
// that.

@testable import MessagePort
import TestSupport
import Testing

/// How a right reaches its port.
enum TestTransport: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// The port's own right, without a connection.
    case memory
    /// A connection of its own, made as another process would make it, without rings.
    case socket
    /// The same, with rings from its first message on.
    case ring
    /// A connection from another process, where the far side of the test is; with rings once the traffic calls for
    /// them.
    case process
    /// A right to a name, which the port has, over a connection as `socket`'s. Not of `allCases`: such a right outlives
    /// its port, so what is said of a port's end does not hold for it.
    case name

    static let allCases: [TestTransport] = [.memory, .socket, .ring, .process]
    /// The transports of a test whose port lives on, by a right to its name as well.
    static let withName = allCases + [.name]
    /// The transports of a test that inspects the far side, or has closures there.
    static let inProcess: [TestTransport] = [.memory, .socket, .ring]
    /// The transports of a test that is about connections.
    static let connected: [TestTransport] = [.socket, .ring, .process]

    var testDescription: String { rawValue }
}

extension Trait where Self == LeakCheck {
    /// The leak check, for tests that open sockets: the library keeps one spare descriptor until the process ends, and
    /// the thread that sends replies for which there was no room.
    static var contract: Self {
        .leakCheck(warmingUp: warmUpIOThread)
    }
}

extension Trait where Self == ConditionTrait {
    /// For suites that are about rings alone. The others use the socket where the environment wants no rings.
    static var rings: Self { .enabled(if: RingPolicy.standard != .never, "PORT_RING says never") }
}
