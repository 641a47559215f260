// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PackageDescription

let package = Package(
    name: "portbench",
    products: [.executable(name: "portbench", targets: ["portbench"])],
    dependencies: [.package(name: "swift-message-port", path: "..")],
    targets: [
        .target(name: "CBareCalls"),
        .target(name: "CPeers"),
        .executableTarget(
            name: "portbench",
            dependencies: [
                "CBareCalls", "CPeers", .product(name: "NamedPortServer", package: "swift-message-port"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// The libraries that others wait and send with are compared with when they are asked for; see README.md.
if Context.environment["PORTBENCH_PEERS"] == "1" {
    let peers = ["CZeroMQ": "libzmq", "CGLib": "glib-2.0", "CNNG": nil, "CLibUV": "libuv"]
    for (name, pkgConfig) in peers {
        package.targets.append(.systemLibrary(name: name, path: "Sources/Peers/\(name)", pkgConfig: pkgConfig))
    }
    for target in package.targets where target.name == "CPeers" {
        target.dependencies = peers.keys.sorted().map { .target(name: $0) }
        target.cSettings = [.define("PORTBENCH_PEERS")]
    }
}
