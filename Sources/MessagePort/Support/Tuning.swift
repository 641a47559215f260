// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The constants of this library that decide speed or fairness, and nothing else. Limits that a program can meet are
/// where they are enforced, and in Docs/Limits.md. A constant, or its section, names the decision of Docs/Decisions
/// that it is from, or says that it was chosen and not measured.
enum Tuning {
    // MARK: Sending. Chosen, not measured, unless a decision or a measurement is named.

    /// A large message is cut into pieces of at most one part in this many of a ring: several of them fit, so that the
    /// consumer copies one out while the next is written. Decision 0026.
    static let piecesInRing = 8

    /// How long a sender waits for room in the ring, for each packet. A consumer that handles messages reads again when
    /// it has handled 32 of them. A sender that waits for less time leaves the ring for packets that cost the consumer
    /// several times as much. Decision 0011.
    static let senderTimeout = Duration.microseconds(100)

    /// The same at the port's end. A reply waits neither for a slow consumer nor for one that manipulates its counter.
    /// Decision 0011.
    static let replierTimeout = Duration.microseconds(20)

    /// How long a sender waits for room before it yields its processor: a consumer that has its own, and handles
    /// messages, mostly reads again before. Decision 0021.
    static let timeBetweenYields = Duration.microseconds(20)

    /// How long a sender waits for a consumer that was awake a moment ago to poll again, before it wakes it.
    /// Decision 0021.
    static let timeBeforeWakeUp = Duration.microseconds(2)

    /// How many pauses between two checks meanwhile.
    static let pausesBeforeWakeUp = 8

    /// How many times a wake-up is tried for which the kernel has no memory.
    static let wakeUpTries = 4

    /// A consumer that closes the ring states within this time how far it reads.
    static let closingTimeout = Duration.milliseconds(100)

    /// When the kernel has no memory for a packet, too many descriptors are in flight, or none is left to wait with,
    /// the packet is sent again after this time. A connection to a full backlog, of which the kernel does not report room,
    /// is tried again after it, and a listener that cannot accept is watched again.
    static let timeUntilRetry = Duration.milliseconds(10)

    /// How long a move to another process pauses, at first, before it checks again whether the port is quiet.
    static let firstMovePause = Duration.microseconds(50)

    /// How long a port that is to move is frozen at most, while it waits until it is quiet. Chosen, not measured.
    static let longestFreeze = Duration.milliseconds(20)

    /// How long such a port goes on before it is frozen again: nine tenths of the time. Chosen, not measured.
    static let timeBetweenFreezes = Duration.milliseconds(180)

    /// How long a right to a name pauses after a search that failed, for another reason than a shortage of this process,
    /// while notices wait: then it searches again.
    static let timeUntilNextSearch = Duration.seconds(1)

    /// How long a notice of a port's end waits, after the connection, for the end of the process.
    static let processEndTime = Duration.milliseconds(100)

    /// From this size on a payload is copied rather than moved by the eight bytes of its record's head: glibc before
    /// 2.40 does that with one instruction, which is slow when the target is so close behind the source.
    /// Benchmarks/History.md, "Large bodies".
    static let copiedSize = 4 << 10

    /// A message that may fit into an empty socket, which holds this many packets, goes in as few packets as possible.
    static let undividedPackets = 4

    /// From this size on, in a message above that size, the tail has packets of its own, so that it can be received
    /// into its final memory. Decision 0016.
    static let dividedTailSize = 16 << 10

    // MARK: Receiving. Chosen, not measured, unless a decision is named.

    /// The most packets that one call receives, so that one busy connection delays the others little.
    static let packetBudget = 32

    /// How many packets may be read for one dequeued message: together, from one process, and from one connection. For
    /// a port that reads while its queue has room.
    static let standardBudget = (packets: 2048, ofProcess: 1024, ofConnection: 32)

    /// The same for a port whose policy chooses among all that has arrived: more than a socket holds.
    static let choosingBudget = (packets: 16384, ofProcess: 4096, ofConnection: 4096)

    /// The most bytes of a ring whose plain messages are queued together. Decision 0018.
    static let batchSize = 64 << 10

    /// The most messages that are queued together. Decision 0018.
    static let batchCount = 32

    /// The most steps between two packets: a peer that manipulates its counters delays its consumer no longer.
    static let stepLimit = 16

    /// After this many polls that found nothing a loop no longer polls a ring, until the kernel reports something: each
    /// polled ring slows down each spin. Decision 0022.
    static let emptyPollLimit: UInt8 = 64

    /// How many times the right's end reads what a ring holds before the I/O thread does.
    static let passLimit = 256

    /// The most connections of a port whose rings a loop polls. Decision 0025.
    static let busyLimit = 4

    /// How many polls of the connection alone may follow each other. Decision 0016.
    static let solePollLimit = 7

    /// The most clients that are accepted for one dequeued message; the others are reported again. Chosen, not measured.
    static let acceptBudget = 64

    /// How many clients the I/O thread accepts for a port before a thread of the port polls. Chosen, not measured.
    static let backgroundClients = 64

    /// How many times one poll asks the kernel, for 64 sockets each, while it skips some of those that are reported.
    static let reportRounds = 8

    /// The most bytes that are reserved for a message because its sender announces them. Reserved memory that is not
    /// written uses none.
    static let trustedLength = 16 << 20

    /// How many connections may wait to be accepted; the kernel may allow fewer (`net.core.somaxconn`).
    static let listenBacklog: Int32 = 4096

    /// How many ports are asked for their statistics at the same time.
    static let simultaneousQueries = 128

    // MARK: Rings. Chosen, not measured, unless a decision is named.

    /// How long a sender at a full connection waits for the receiver, before it has another thread of its process read.
    /// Chosen, not measured.
    static let timeBeforeKnock: Duration = .milliseconds(1)

    /// How often a port checks that its clients use what they were granted, while a sender lacks room. Chosen, not measured.
    static let creditCheckInterval: Duration = .milliseconds(100)

    /// How long a sender lets a port answer whether it has room. Chosen, not measured.
    static let creditAnswerTime: Duration = .milliseconds(250)

    /// At least the queue's limit divided by this power of two is granted at once, where as much is free. Decision 0035.
    static let grantedBatchShift = 4

    /// From this limit of a queue on a sender that waits is granted several slots at once. Chosen, not measured.
    static let leastLimitOfGrantedBatches = 16

    /// How long it waits for them while less than half of the queue is free. Chosen, not measured.
    static let grantDelay: Duration = .milliseconds(1)

    /// How long a port that has not answered is not asked again. Chosen, not measured.
    static let timeUntilNextQuestion: Duration = .seconds(1)

    /// This many packets within this time earn rings. Decision 0011.
    static let earningCount = 64

    /// See `earningCount`. Decision 0011.
    static let earningTime = Duration.milliseconds(250)

    /// How much longer than the owner of a port the one that has asked for a hand-over waits. Chosen, not measured.
    static let handOverMargin = Duration.seconds(2)

    /// How many connections of a process to a port may have rings. A process of this library has one connection to a
    /// port, so the limit is for others.
    static let ringLimit = 8

    /// After a packet with descriptors, this many without must go by socket before the ring is used again.
    static let packetsUntilRing = 8

    /// After this many packets in a row for which the consumer had to be woken, the socket is faster: it carries a
    /// packet where the ring needs a wake-up. Decisions 0011 and 0016.
    static let wakeUpLimit = 16

    /// Then this many packets go by socket, until the next check whether the consumer still sleeps. The consumer gets
    /// this number, so it need not peek at a packet before it reads it. Decisions 0011 and 0016.
    static let sleepyCount = 128

    // MARK: Queues. Chosen, not measured, unless a decision is named.

    /// After this many dequeued messages the sockets are polled again. Decision 0013.
    static let dequeuesBetweenPolls = 32

    /// How many times the sockets are polled for one message: what is read may be no message.
    static let pollsForOne = 4

    /// How many times the sockets are polled to read all that has arrived: senders may be as fast as the receiver.
    static let pollsForAll = 4

    /// A sender that waits for room sleeps after this many checks in a row that saw no message dequeued.
    static let checksWithoutProgress = 8

    /// How many pauses of the processor between two checks: about a microsecond.
    static let pausesBetweenChecks = 32

    /// How long a sender spins for room in a full queue at most, before it sleeps.
    static let longestSpin = Duration.microseconds(100)

    /// How long the sender of a stream is given at most: enough for about nine messages. Decision 0022.
    static let timeForMore = Duration.microseconds(1)

    /// How many pauses between two reads of the clock meanwhile. Decision 0022.
    static let pausesForMore = 16

    /// After a batch that was revoked, or that helped nothing, this many messages are dequeued one by one.
    /// Decision 0020.
    static let dequeuesAfterRevocation: UInt8 = 64

    /// How many messages the first memory of a buffer holds.
    static let smallestBuffer = 2

    /// A buffer with more room is not exchanged: it would stay with a queue that has few messages. Decision 0021.
    static let mostExchanged = 64

    /// How many ends of pipes that came with rights to a port are retained as long as there is a right to it, besides
    /// those of the rights that are left. Of each honest sender one is needed, and few processes pass on rights to one
    /// port. Chosen, not measured.
    static let keptEnds = 16

    /// How many replies to one connection may wait for room in connections of other ports. Chosen, not measured.
    static let pendingReplies = 64

    // MARK: Waits

    /// How long a synchronous request waits before a probe follows its wait; the next ones start after twice the time
    /// each. Decision 0039.
    static let timeUntilProbe: Duration = .milliseconds(100)

    /// How long a process remembers a probe at least. It forgets it within twice that time. Decision 0039.
    static let probeLifetime: Duration = .seconds(1)

    /// How many probes about one request wait to be handled, and are remembered: the newest. Decision 0039.
    static let probesPerRequest = 16

    // MARK: Files. Chosen, not measured.

    /// How many files one sweep examines at most, in a sweep of sockets together with their owners; the next process
    /// that starts examines more.
    static let sweepLimit = 10_000

    /// How many times a process tries to lock a file. Each further time means that another owner removed the file
    /// meanwhile.
    static let lockAttempts = 100

    // MARK: Memory in messages. Chosen, not measured.

    /// The smallest slot of a pool, in bytes: a page, so that no two loans share one.
    static let smallestSlot = 4096

    /// Slots that are smaller share segments of this many bytes: a segment takes a descriptor, and a mapping in each
    /// process that knows it.
    static let smallestSegment = 1 << 20

    /// How long a thread or task that waits for room in a pool waits at first before it checks what other processes have
    /// returned; then twice as long each time.
    static let firstReturnCheck = Duration.microseconds(50)

    /// How long it waits at most between two such checks.
    static let lastReturnCheck = Duration.milliseconds(2)

    /// After this time memory of a pool that nobody uses is given back to the system.
    static let idleMemoryTime = Duration.seconds(10)
}
