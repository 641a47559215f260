// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import Synchronization
package import Testing

/// A fresh directory that only this user may enter, removed with its contents at the end of its scope.
package struct ScratchDirectory: Sendable {
    /// What may be in the directory when its scope ends.
    package enum Leftovers: Sendable {
        /// Anything but a socket: a socket left behind is a leak of the library.
        case anyFiles
        /// All that a crash or a kill left.
        case anything
        /// Nothing.
        case none
    }

    /// Its absolute path, without a slash at its end, short enough for sockets in it.
    package let path: String

    private static let live = Mutex<Set<String>>([])

    /// The directories whose scope has not ended.
    static var inUse: Set<String> { live.withLock { $0 } }

    init() throws {
        var template = Array("\(FileManager.default.temporaryDirectory.path)/port-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError(errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = path
        ScratchDirectory.live.withLock { _ = $0.insert(path) }
    }

    /// The path of something in the directory.
    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file.
    ///
    /// - Returns: its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    /// The names in the directory, sorted.
    package func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    func end(_ leftovers: Leftovers, _ sourceLocation: SourceLocation) throws {
        let unwanted = try names().filter { name in
            switch leftovers {
            case .anything: false
            case .none: true
            case .anyFiles: isSocket(path(name))
            }
        }
        if !unwanted.isEmpty {
            Issue.record("left behind in the scratch directory: \(unwanted)", sourceLocation: sourceLocation)
        }
        try FileManager.default.removeItem(atPath: path)
        ScratchDirectory.live.withLock { _ = $0.remove(path) }
    }

    private func isSocket(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}

/// Runs `body` with a scratch directory and removes that with its contents.
@discardableResult
package func withScratchDirectory<Result>(
    leaving leftovers: ScratchDirectory.Leftovers = .anyFiles, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (ScratchDirectory) throws -> Result
) throws -> Result {
    let directory = try ScratchDirectory()
    let result = Swift.Result { try body(directory) }
    try directory.end(leftovers, sourceLocation)
    return try result.get()
}

/// Runs `body` with a scratch directory and removes that with its contents.
@discardableResult
package func withScratchDirectory<Result: Sendable>(
    leaving leftovers: ScratchDirectory.Leftovers = .anyFiles, sourceLocation: SourceLocation = #_sourceLocation,
    isolation: isolated (any Actor)? = #isolation, _ body: (ScratchDirectory) async throws -> Result
) async throws -> Result {
    let directory = try ScratchDirectory()
    let result: Swift.Result<Result, any Error>
    do {
        result = .success(try await body(directory))
    } catch {
        result = .failure(error)
    }
    try directory.end(leftovers, sourceLocation)
    return try result.get()
}
