// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import MessagePort
import PortSystem

extension NameDirectoryWatch {
    private static let atName: DirectoryEvents = [
        .created, .deleted, .modified, .closedAfterWriting, .movedIn, .movedOut, .selfMoved, .attributes,
    ]
    private static let onTheWay: DirectoryEvents = [.created, .deleted, .movedIn, .movedOut, .selfMoved, .attributes]
    private static let atDeclared: DirectoryEvents = [.created, .movedIn, .attributes]
    private static let roundLimit = 1000

    /// Watches the directory that is there now, and the path to it.
    mutating func begin() throws(PortError) {
        do throws(PortError) {
            for _ in 0..<Self.roundLimit {
                end()
                if try beginIfStill() { return }
            }
            throw PortError(SystemError(ESTALE), subject: .path(path))
        } catch {
            end()
            throw error
        }
    }

    private mutating func end() {
        for number in [watch, declared] + way.keys where number != -1 { remove(number) }
        (watch, declared) = (-1, -1)
        way = [:]
        names = nil
    }

    /// - Returns: false when something changed meanwhile.
    private mutating func beginIfStill() throws(PortError) -> Bool {
        let directory = try openNames()
        let seen = try look()
        if let directory {
            watch = try add("/proc/self/fd/\(directory.raw)", Self.atName) ?? -1
            // By its path where /proc is not mounted; the check below shows whether that still leads there.
            if watch == -1 { watch = try add(directory.path, Self.atName) ?? -1 }
        }
        var events: [CInt: DirectoryEvents] = [:]
        for step in seen.steps { try addToWay(step, isOptional: step.directory != seen.last, &events) }
        if let top = seen.parent, followsDeclared {
            try addToWay(
                PathWalk.Step(directory: top, names: [Array("declared".utf8)], mayChange: true), isOptional: false,
                &events)
            declared = try add(top + "/declared", Self.atDeclared) ?? -1
        }
        // Did it change before the watches were there?
        guard try look() == seen else { return false }
        guard let directory else { return !seen.isWhole }
        names = directory
        return watch != -1 && directory.isCurrent
    }

    func openNames() throws(PortError) -> TrustedDirectory? {
        do throws(PortError) {
            let top = try TrustedDirectory.open(path: path, makes: false, mayBeShared: mayBeShared)
            return try top.subdirectory("names", makes: false)
        } catch {
            if let code = error.systemError?.code, code == ENOENT || code == ENOTDIR { return nil }
            throw error
        }
    }

    private func look() throws(PortError) -> PathWalk {
        do throws(SystemError) {
            return try PathWalk(to: path + "/names")
        } catch {
            throw PortError(error, subject: .path(path))
        }
    }

    /// Watches one directory on the path, and records in `events` what each watch reports: two paths may lead to one
    /// directory.
    private mutating func addToWay(
        _ step: PathWalk.Step, isOptional: Bool, _ events: inout [CInt: DirectoryEvents]
    ) throws(PortError) {
        do throws(PortError) {
            let wanted = step.mayChange ? Self.onTheWay : .selfMoved
            guard let watch = try add(step.directory, wanted) else { return }
            if let before = events[watch], before.union(wanted) != wanted {
                _ = try add(step.directory, before.union(wanted))
            }
            events[watch, default: []].formUnion(wanted)
            way[watch, default: []].formUnion(step.names)
        } catch {
            // A directory that may be searched and not read reports nothing: a move of it goes unnoticed.
            if !isOptional || error.systemError?.code != EACCES { throw error }
        }
    }

    private func remove(_ number: CInt) {
        if case .reports(let watch) = kernel { watch.value.remove(number) }
    }

    /// - Returns: nil when the directory is not there.
    private func add(_ path: String, _ events: DirectoryEvents) throws(PortError) -> CInt? {
        do throws(SystemError) {
            guard case .reports(let watch) = kernel else { return nil }
            return try watch.value.add(path, events)
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: return nil
            // An error for one path may concern its file system only.
            case _ where error.code == ENOSPC || error.isRefusal && (try? SystemProbe.directoryWatch()) == nil:
                throw PortError(.watchLimit, system: error, subject: .path(path))
            default: throw PortError(error, subject: .path(path))
            }
        }
    }
}
