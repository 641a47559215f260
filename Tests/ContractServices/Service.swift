// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a port does with each message: a behaviour with a name, which can be sent to another process.
package enum Service: String, Sendable {
    /// It has no handler.
    case none
    /// Its handler does nothing.
    case silent
    /// Does what the message's id asks for (``Act``).
    case acts
    /// Says the id, and sends nothing back.
    case note
    /// Replies the next id and the bytes in reverse order; says what is wrong with the right to reply.
    case reverse
    /// Replies the message itself.
    case echo
    /// Replies the id, and says it.
    case echoAndSay
    /// Says the text and the id, and replies 1.
    case accept
    /// Replies the count of bytes as the id, and the first and the last byte.
    case measure
    /// Replies the count of the memory's bytes as the id; of each memory its grade, its first and its last byte, and the
    /// sum of all.
    case weigh
    /// Replies memory of a pool, of as many bytes as the id says, each that number's lowest byte; retains none.
    case lend
    /// Replies the numbers in the message as optional texts, and a nil.
    case describe
    /// Replies with an error: the id and the text. Replies nothing to the id 0. Says what a second reply threw.
    case refuse
    /// Replies with an error of a very long text.
    case refuseAtLength
    /// Reports to the requester that its request failed: 6, "six".
    case fail
    /// Replies twice, and says what each threw.
    case replyTwice
    /// Lets the reply right end: unused for the id 0, dropped for 1, moved out and forgotten for others.
    case letGo
    /// Stores the message. Says so.
    case keep
    /// Stores messages of the id 7, and says so; replies 2 to others.
    case keepSeven
    /// Stores the message, as ``keep`` does, and says "cancelled" when its requester gives up.
    case keepAndAwait
    /// Moves the reply right out of the message and stores it; says what another reply threw.
    case keepRight
    /// Stores requests; one of the id 2 has the first stored one answered with 1, then is answered with 2 itself.
    case late
    /// Stores the message, replies it, and invalidates its port after the id 2.
    case echoAndKeep
    /// Replies twice the id if that is positive, and releases others. Says "cancelled" when a requester gives up.
    case replyAndAwait
    /// Sends the id 1 to its own port, without an end; invalidates it after the id 2.
    case busy
    /// The worker of a check-in: says what it gets, and sends the other port "done" with the id and 100. After the id
    /// 99 it invalidates its port, and sends "bye" with the id 104.
    case worker
    /// Invalidates its port.
    case end
    /// Invalidates its port, stops its loop, then replies 77.
    case lastReply
    /// Asks the reply port with the id 7, and replies the id that it got.
    case askBack
    /// Says "asks", asks the other port that the servant knows with the next id, and replies the id that it got; -1 and
    /// what it threw if it got none.
    case askOther
    /// Sends the id 7 to the reply port, then replies 8.
    case sendBack
    /// Hands the request on, as the next id, to the other port that the servant knows.
    case handOn
    /// Stores the message, and hands the request on as ``handOn`` does.
    case keepAndHandOn
    /// Replies the next id, and asks for a reply to that; says what came.
    case converse
}
