// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What a launch is to do. A later launch sends it to the first.
struct Launch: MessageContent {
    /// The directory in which it was started: names of documents are relative to it.
    var directory: String
    var documents: [String]
    var quits = false

    init(directory: String, arguments: [String]) {
        self.directory = directory
        documents = arguments.filter { $0 != "--quit" }
        quits = arguments.contains("--quit")
    }

    init(from reader: inout MessageReader) throws(PortError) {
        directory = try reader.read()
        documents = try reader.read()
        quits = try reader.read()
    }

    func write(to writer: inout MessageWriter) {
        writer.write(directory)
        writer.write(documents)
        writer.write(quits)
    }
}
