// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("The path to a directory", .leakCheck) struct PathWalkTests {
    /// Resolves a path in a directory; omits the steps to the directory itself.
    private func steps(_ path: String, in scratch: ScratchDirectory) throws -> (steps: [String], walk: PathWalk) {
        let walk = try PathWalk(to: scratch.path + path)
        let steps = walk.steps.filter { $0.directory.hasPrefix(scratch.path) }.map { step in
            let name = step.directory.dropFirst(scratch.path.count)
            let names = step.names.map { String(decoding: $0, as: UTF8.self) }.sorted()
            return "\(name)(\(names.joined(separator: " ")))\(step.mayChange ? "*" : "")"
        }
        return (steps, walk)
    }

    private func make(_ paths: [String], in scratch: ScratchDirectory) throws {
        for path in paths {
            try FileManager.default.createDirectory(
                atPath: scratch.path(path), withIntermediateDirectories: true)
        }
    }

    @Test("each directory is watched for its move only, the last one also for the loss of its name")
    func plain() throws {
        try withScratchDirectory { scratch in
            try make(["a/b/names"], in: scratch)
            let (steps, walk) = try steps("/a//b/./names", in: scratch)
            #expect(steps == ["(a)", "/a(b)", "/a/b(names)*"])
            #expect(walk.isWhole)
            #expect(walk.parent == scratch.path("a/b"))
            #expect(walk.last == walk.parent)
        }
    }

    @Test("where a name is missing the path ends, and the directory before it may go too")
    func missing() throws {
        try withScratchDirectory { scratch in
            try make(["a"], in: scratch)
            let (steps, walk) = try steps("/a/b/names", in: scratch)
            #expect(steps == ["(a)*", "/a(b)*"])
            #expect(!walk.isWhole)
            #expect(walk.parent == nil)
            #expect(walk.last == scratch.path("a"))
            try scratch.write("", to: "a/b")
            let below = try self.steps("/a/b/names", in: scratch)
            #expect(!below.walk.isWhole)
        }
    }

    @Test("a link is followed and watched, only in the middle; a circle of links is an error")
    func links() throws {
        try withScratchDirectory { scratch in
            try make(["real/x/top/names"], in: scratch)
            func link(_ name: String, _ target: String) throws {
                try FileManager.default.createSymbolicLink(
                    atPath: scratch.path(name), withDestinationPath: target)
            }
            try link("absolute", scratch.path("real/x"))
            try link("relative", "real/../absolute/./")
            for name in ["absolute", "relative"] {
                let (steps, walk) = try steps("/\(name)/top/names", in: scratch)
                #expect(walk.isWhole)
                #expect(walk.parent == scratch.path("real/x/top"))
                #expect(steps.first?.hasSuffix(")*") == true, "\(name): the link may be replaced")
                #expect(steps.contains("/real/x(top)"))
                #expect(steps.last == "/real/x/top(names)*")
            }
            // The last two are not followed: they are not trusted.
            try link("real/x/linked", "top")
            let (_, walk) = try steps("/real/x/linked/names", in: scratch)
            #expect(walk.parent == scratch.path("real/x/linked"))
            try link("circle", "circle")
            #expect(throws: SystemError(ELOOP)) { try PathWalk(to: scratch.path("circle/top/names")) }
        }
    }

    @Test("the directory that is left by \"..\" belongs to the path")
    func above() throws {
        try withScratchDirectory { scratch in
            try make(["a/b", "a/top/names"], in: scratch)
            let (steps, walk) = try steps("/a/b/../top/names", in: scratch)
            #expect(steps == ["(a)", "/a(b top)*", "/a/b()", "/a/top(names)*"])
            #expect(walk.isWhole)
            #expect(try PathWalk(to: "/../../").last == "/")
        }
    }
}
