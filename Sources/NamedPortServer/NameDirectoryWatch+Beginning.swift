// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import MessagePort
import PortSystem

extension NameDirectoryWatch {
    private static let atName: DirectoryEvents = [
        .created, .deleted, .modified, .closedAfterWriting, .movedIn, .movedOut, .selfMoved, .attributes,
    ]
    private static let onTheWay: DirectoryEvents = [.created, .deleted, .movedIn, .movedOut, .selfMoved, .attributes]
    private static let roundLimit = 1000

    /// Watches the directory that is there now, and the way to it.
    mutating func begin() throws(PortError) {
        do throws(PortError) {
            for _ in 0..<Self.roundLimit {
                end()
                if try beginIfStill() { return }
            }
            throw PortError(SystemError(ESTALE), subject: .path(levels.last ?? "/"))
        } catch {
            end()
            throw error
        }
    }

    private mutating func end() {
        if watch != -1 { kernel.remove(watch) }
        for watch in way.keys { kernel.remove(watch) }
        watch = -1
        way = [:]
        names = nil
    }

    /// - Returns: false when something has changed meanwhile.
    private mutating func beginIfStill() throws(PortError) -> Bool {
        guard let directory = try openNames() else { return try beginWithoutDirectory() }
        let path = "/proc/self/fd/\(directory.raw)"
        watch = try add(path, Self.atName) ?? -1
        for (level, next) in zip(levels.dropLast(), levels.dropFirst()) {
            // Only the name in the directory just above is removed while this one is open; those above cannot be.
            let isAbove = next == levels.last
            try addToWay(level, isAbove ? Self.onTheWay : .selfMoved, next, isOptional: !isAbove)
        }
        names = directory
        return watch != -1 && directory.isCurrent
    }

    private func openNames() throws(PortError) -> TrustedDirectory? {
        do throws(PortError) {
            let top = try TrustedDirectory.open(path: levels[levels.count - 2], makes: false)
            return try top.subdirectory("names", makes: false)
        } catch {
            if let code = error.systemError?.code, code == ENOENT || code == ENOTDIR { return nil }
            throw error
        }
    }

    /// Watches for the next name on the way that is not there.
    private mutating func beginWithoutDirectory() throws(PortError) -> Bool {
        for index in levels.indices.dropLast().reversed() {
            guard try addToWay(levels[index], Self.onTheWay, levels[index + 1], isOptional: false) else { continue }
            for above in levels.indices.prefix(index) {
                let events = above == index - 1 ? Self.onTheWay : .selfMoved
                try addToWay(levels[above], events, levels[above + 1], isOptional: true)
            }
            // Made, or removed, before the watch was there?
            return !isThere(levels[index + 1]) && isThere(levels[index])
        }
        return false
    }

    private func isThere(_ path: String) -> Bool {
        ((try? sysStatus(atPath: path)) ?? nil)?.isDirectory ?? false
    }

    /// - Returns: false when the directory is not there.
    @discardableResult
    private mutating func addToWay(_ level: String, _ events: DirectoryEvents, _ next: String, isOptional: Bool)
        throws(PortError) -> Bool
    {
        do throws(PortError) {
            guard let watch = try add(level, events) else { return false }
            way[watch] = String(next.utf8.suffix(next.utf8.count - (level == "/" ? 1 : level.utf8.count + 1))) ?? ""
            return true
        } catch {
            // A directory that may be searched and not read tells nothing: that it is moved goes unnoticed.
            if isOptional, error.systemError?.code == EACCES { return false }
            throw error
        }
    }

    /// - Returns: nil when the directory is not there.
    private func add(_ path: String, _ events: DirectoryEvents) throws(PortError) -> CInt? {
        do throws(SystemError) {
            return try kernel.add(path, events)
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: return nil
            case ENOSPC: throw PortError(.watchLimit, system: error, subject: .path(path))
            default: throw PortError(error, subject: .path(path))
            }
        }
    }
}
