// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
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
                .product(name: "FoundationPorts", package: "swift-message-port"),
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
    package.targets += [
        .systemLibrary(
            name: "CZeroMQ", path: "Sources/Peers/CZeroMQ", pkgConfig: "libzmq", providers: [.apt(["libzmq3-dev"])]),
        .systemLibrary(
            name: "CGLib", path: "Sources/Peers/CGLib", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])]),
        .systemLibrary(name: "CNNG", path: "Sources/Peers/CNNG", providers: [.apt(["libnng-dev"])]),
        .systemLibrary(
            name: "CLibUV", path: "Sources/Peers/CLibUV", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
        .systemLibrary(
            name: "CSystemd", path: "Sources/Peers/CSystemd", pkgConfig: "libsystemd",
            providers: [.apt(["libsystemd-dev"])]),
        // What `gnustep-config --objc-flags` has; the runtime is gcc's, and so are its headers.
        .executableTarget(
            name: "portbench-gnustep",
            cSettings: [
                .define("GNUSTEP"), .define("GNUSTEP_BASE_LIBRARY"), .define("GNU_RUNTIME"),
                .define("_NATIVE_OBJC_EXCEPTIONS"),
                .unsafeFlags(
                    [
                        "-fno-blocks", "-fobjc-runtime=gcc", "-fobjc-exceptions", "-fexceptions",
                        "-fconstant-string-class=NSConstantString", "-isystem", "/usr/include/GNUstep",
                    ] + gccHeaders.flatMap { ["-idirafter", $0] }),
            ],
            linkerSettings: [.linkedLibrary("gnustep-base"), .linkedLibrary("objc")]),
    ]
    // Without gRPC's headers there is no such program, and portbench reports it as not available.
    if FileManager.default.fileExists(atPath: "/usr/include/grpcpp/grpcpp.h") {
        package.cxxLanguageStandard = .cxx17
        package.targets.append(
            .executableTarget(
                name: "portbench-grpc",
                linkerSettings: ["grpc++", "grpc", "gpr", "protobuf", "absl_synchronization"].map { .linkedLibrary($0) }
            ))
    }
    for target in package.targets where target.name == "CPeers" {
        target.dependencies = ["CZeroMQ", "CGLib", "CNNG", "CLibUV", "CSystemd"]
        target.cSettings = [.define("PORTBENCH_PEERS")]
        // It has no file for pkg-config.
        target.linkerSettings = [.linkedLibrary("nng")]
    }
}

/// The folders of gcc's headers that have those of the Objective-C runtime.
var gccHeaders: [String] {
    let files = FileManager.default
    func folders(_ path: String) -> [String] {
        ((try? files.contentsOfDirectory(atPath: path)) ?? []).map { "\(path)/\($0)" }
    }
    return folders("/usr/lib/gcc").flatMap(folders).map { "\($0)/include" }.filter {
        files.fileExists(atPath: "\($0)/objc/objc.h")
    }
}
