// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Pictures from a producer to two viewers, which are other processes. No byte of a picture is copied: the producer draws
// in a pool's memory, and the viewers read it there.

import Foundation
import MessagePort

/// The messages to a viewer: pictures have the numbers from 1.
let leave: Int32 = 0

do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "--viewer" {
        try view(number: arguments[1], writingTo: arguments[2])
    } else if let directory = arguments.first {
        try produce(writingTo: directory)
    } else {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("frames-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        let result = Result { try produce(writingTo: directory) }
        try FileManager.default.removeItem(atPath: directory)
        try result.get()
    }
} catch {
    FileHandle.standardError.write(Data("frames: \(error)\n".utf8))
    exit(1)
}
