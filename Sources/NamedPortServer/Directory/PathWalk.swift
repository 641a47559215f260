// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The path to a directory as the kernel resolves it: from the root, one name after the other, through symbolic links,
// "." and "..". Each directory on it can be moved; a link can be replaced; and the last directory that is there can
// gain or lose the next name.

import PortCLibrary
import PortSystem

/// Which directories a path leads through, and by which names.
struct PathWalk: Equatable, Sendable {
    /// A directory on the path.
    struct Step: Equatable, Sendable {
        /// Its path, without links.
        let directory: String
        /// The names in it that lead on, as bytes: texts that are equal may be different names.
        var names: Set<[UInt8]> = []
        /// Whether these names may go, come, or lead elsewhere while the directory stays.
        var mayChange = false

        static func == (left: Step, right: Step) -> Bool {
            left.directory.utf8.elementsEqual(right.directory.utf8) && left.names == right.names
                && left.mayChange == right.mayChange
        }
    }

    /// The directories, each once.
    private(set) var steps: [Step] = []
    /// The directory in which the last name of the path is, or would be; nil when the path ends before it.
    private(set) var parent: String?
    /// Whether there is something at the path.
    private(set) var isWhole = false
    /// The last directory that is there: the next name is missing in it, or is the last one.
    private(set) var last = "/"

    /// As many links as the kernel follows.
    private static let linkLimit = 40

    /// Resolves a path. Its last two names are not followed when they are links: what is there is not trusted then.
    init(to path: String) throws(SystemError) {
        var rest = Self.names(of: path)
        var linkCount = 0
        while let name = rest.popLast() {
            if name == "." { continue }
            if name == ".." {
                noteStep(last)
                noteNameOfLast()
                last = Self.parent(of: last)
                continue
            }
            let next = (last == "/" ? "" : last) + "/" + name
            if rest.isEmpty { parent = last }
            let (isThere, target) = try Self.look(at: next)
            noteStep(last, name, mayChange: rest.isEmpty || !isThere || target != nil)
            guard isThere else {
                noteNameOfLast()
                return
            }
            guard let target, rest.count > 1 else {
                if !rest.isEmpty { last = next }
                continue
            }
            linkCount += 1
            if linkCount > Self.linkLimit { throw SystemError(ELOOP) }
            if target.utf8.first == UInt8(ascii: "/") { last = "/" }
            rest += Self.names(of: target)
        }
        isWhole = true
    }

    /// Whether something is there, and where it leads when it is a link.
    private static func look(at path: String) throws(SystemError) -> (isThere: Bool, target: String?) {
        do throws(SystemError) {
            return (true, try sysReadLink(path))
        } catch {
            if error.code == ENOENT || error.code == ENOTDIR { return (false, nil) }
            throw error
        }
    }

    private mutating func noteStep(_ directory: String, _ name: String? = nil, mayChange: Bool = false) {
        let known = steps.firstIndex { $0.directory.utf8.elementsEqual(directory.utf8) }
        if known == nil { steps.append(Step(directory: directory)) }
        let index = known ?? steps.count - 1
        if let name { steps[index].names.insert(Array(name.utf8)) }
        if mayChange { steps[index].mayChange = true }
    }

    /// Notes the name of the last directory, which may be removed: an empty directory can be.
    private mutating func noteNameOfLast() {
        guard last != "/", let slash = last.utf8.lastIndex(of: UInt8(ascii: "/")) else { return }
        noteStep(Self.parent(of: last), String(last[last.utf8.index(after: slash)...]), mayChange: true)
    }

    private static func parent(of directory: String) -> String {
        guard let slash = directory.utf8.lastIndex(of: UInt8(ascii: "/")), slash != directory.startIndex else {
            return "/"
        }
        return String(directory[..<slash])
    }

    /// The names of a path, the first one last.
    private static func names(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).reversed().map { String(decoding: $0, as: UTF8.self) }
    }
}
