// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The content of a message with the id `errorNotification`.
struct RemoteErrorContent: MessageContent {
    var code: Int32
    var text: String

    init(code: Int32, text: String) {
        self.code = code
        self.text = text
    }

    init(from reader: inout MessageReader) throws(PortError) {
        code = try reader.read()
        text = try reader.read()
    }

    func write(to writer: inout MessageWriter) {
        writer.write(code)
        writer.write(text)
    }
}
