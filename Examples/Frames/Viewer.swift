// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import MessagePort

/// What a viewer has seen.
private struct View {
    var pictureCount = 0
    var sharedByteCount = 0
    var copiedByteCount = 0
    var files: [String] = []
}

/// Counts the pictures that come, and writes every tenth into a file, from where it is.
func view(number: String, writingTo directory: String) throws {
    guard let parent = try SendRight.bootstrap() else { throw PortError(.bootstrapInvalid) }
    let view = LoopBound(View())
    let port = MachPort { port, message in
        do {
            if message.id == leave {
                let seen = view.value
                try message.reply(
                    MachMessage(
                        text: "viewer \(number): \(seen.pictureCount) pictures, \(seen.sharedByteCount) bytes in place,"
                            + " \(seen.copiedByteCount) copied; wrote \(seen.files.joined(separator: ", "))"))
                port.invalidate()
                return ThreadRunLoop.current.stop()
            }
            guard let picture = message.memory.first, picture.count == Picture.byteCount else { return }
            view.value.pictureCount += 1
            if picture.grade == .copied {
                view.value.copiedByteCount += picture.count
            } else {
                view.value.sharedByteCount += picture.count
            }
            if message.id % 10 == 0 {
                let name = "viewer-\(number)-\(message.id).ppm"
                try write(picture, to: "\(directory)/\(name)")
                view.value.files.append(name)
            }
        } catch {
            FileHandle.standardError.write(Data("frames: viewer \(number): \(error)\n".utf8))
        }
    }
    try port.schedule()
    try parent.checkIn(port)
    ThreadRunLoop.current.run()
}

private func write(_ picture: MessageMemory, to path: String) throws {
    try Data(Picture.head.utf8).write(to: URL(fileURLWithPath: path))
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.seekToEnd()
    try picture.withBytes { bytes in try bytes.withUnsafeBytes { try file.write(contentsOf: $0) } }
    try file.close()
}
