// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The name of the service, and the ids of its messages.
enum NoteRequest {
    static let portName = "org.example.notes"

    /// The text of a note; the reply is its number.
    static let add: Int32 = 1
    /// Nothing; the reply is all notes, as text.
    static let list: Int32 = 2
    /// The number of a note; the reply is empty, or an error with the code `noSuchNote`.
    static let remove: Int32 = 3
    /// Nothing; the service ends.
    static let stop: Int32 = 4

    static let noSuchNote: Int32 = 1
    static let notUnderstood: Int32 = 2
}
