// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A package with a program in C. README.md has the command that builds it, with the toolchain's own headers.

import PackageDescription

let library = Context.packageDirectory + "/../.."

let package = Package(
    name: "listing-3-17-c",
    dependencies: [.package(name: "swift-message-port", path: "../..")],
    targets: [
        .executableTarget(
            name: "listing-3-17-c", dependencies: [.product(name: "FoundationPortsC", package: "swift-message-port")],
            path: ".", exclude: ["README.md"], sources: ["main.c"],
            // The header of the library is beside its sources. CoreFoundation's need blocks.
            cSettings: [.unsafeFlags(["-fblocks", "-I", library + "/Sources/CFoundationPorts/client"])],
            linkerSettings: [.linkedLibrary("Foundation")])
    ]
)
