// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a ``Servant`` does with a message, by its id.
package enum Act {
    /// Replies the bytes in reverse order.
    package static let reverse: Int32 = 1
    /// Replies the number of its process.
    package static let process: Int32 = 2
    /// Replies nothing: its handler returns nil.
    package static let silence: Int32 = 3
    /// Says "note TEXT"; no reply is expected.
    package static let note: Int32 = 4
    /// Kills its process before it replies.
    package static let die: Int32 = 5
    /// Invalidates its port, stops its loop, replies "gone".
    package static let leave: Int32 = 6
    /// Lets the reply right end unused.
    package static let drop: Int32 = 7
    /// Stores the reply right; says "retained".
    package static let keep: Int32 = 8
    /// Replies to all requests that it stored; says "answered", or the error, for each; replies how many.
    package static let answer: Int32 = 9
    /// Requests ``reverse`` of the reply port, in the default mode; replies that reply reversed, or the error.
    package static let callBack: Int32 = 10
    /// Writes "written by PROCESS" to the descriptors.
    package static let write: Int32 = 11
    /// Requests ``process`` of the right inside, replies that.
    package static let askOther: Int32 = 12
    /// Replies a right to a new port, which reverses.
    package static let make: Int32 = 13
    /// Hands the request on to the right inside, which replies instead.
    package static let handOn: Int32 = 14
    /// Ends its process with the status that the text says, before it replies.
    package static let exit: Int32 = 15
}
