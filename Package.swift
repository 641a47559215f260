// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PackageDescription

/// The programs in Examples, and the folder of each.
let examples = [
    "checkin": "CheckIn",
    "greeter": "Greeter",
    "listing-3-1": "Listing-3-1",
    "listing-3-2": "Listing-3-2",
    "listing-3-3": "Listing-3-3",
    "listing-3-10": "Listing-3-10",
    "listing-3-12": "Listing-3-12",
    "listing-3-16": "Listing-3-16",
    "listing-3-17": "Listing-3-17",
    "resident": "ResidentThread",
    "trace": "ActivityTrace",
    "stalls": "StallMonitor",
    "single": "SingleInstance",
    "notes": "Notes",
    "pool": "WorkerPool",
    "progress": "Progress",
    "loops": "OtherLoops",
    "spawned": "Spawned",
    "restart": "Restart",
    "handover": "Handover",
    "frames": "Frames",
]

/// The programs in Examples that use FoundationPorts.
let foundationExamples = [
    "foundation-mixed": "Foundation-Mixed",
    "listing-3-12-foundation": "Listing-3-12-Foundation",
    "listing-3-17-foundation": "Listing-3-17-Foundation",
]

let package = Package(
    name: "swift-message-port",
    products: [
        .library(name: "RunLoopCore", targets: ["RunLoopCore"]),
        .library(name: "MessagePort", targets: ["MessagePort"]),
        .library(name: "NamedPortServer", targets: ["NamedPortServer"]),
        .library(name: "FoundationPorts", targets: ["FoundationPorts"]),
        // For programs in C and C++, outside of packages.
        .library(name: "FoundationPortsC", type: .dynamic, targets: ["FoundationPorts"]),
        // The examples are programs of this package only: as products, no package that uses this one could have their names.
        .executable(name: "portctl", targets: ["portctl"]),
    ],
    targets: [
        .target(name: "CPortShims", linkerSettings: [.linkedLibrary("dispatch")]),
        .target(name: "PortCLibrary"),
        .target(name: "PortSystem", dependencies: ["CPortShims", "PortCLibrary"]),
        .target(name: "RunLoopCore", dependencies: ["PortCLibrary", "PortSystem"]),
        .target(name: "MessagePort", dependencies: ["PortCLibrary", "PortSystem", "RunLoopCore"]),
        .target(name: "NamedPortServer", dependencies: ["PortCLibrary", "PortSystem", "RunLoopCore", "MessagePort"]),
        .target(name: "CFoundationPorts", linkerSettings: [.linkedLibrary("dispatch")]),
        .target(
            name: "FoundationPorts",
            dependencies: ["CFoundationPorts", "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer"]),
        .executableTarget(name: "portctl", dependencies: ["PortCLibrary", "NamedPortServer"]),

        .target(name: "CRefusals", path: "Tests/CRefusals"),
        .executableTarget(name: "refuser", dependencies: ["CRefusals"], path: "Tests/Refuser"),
        .target(
            name: "TestSupport",
            dependencies: ["PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "CRefusals"],
            path: "Tests/TestSupport"),
        .target(name: "RawRing", dependencies: ["PortSystem"], path: "Tests/RawRing"),
        .target(
            name: "ContractServices", dependencies: ["PortSystem", "RunLoopCore", "MessagePort"],
            path: "Tests/ContractServices"),
        .executableTarget(
            name: "port-test-peer",
            dependencies: ["PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "ContractServices"],
            path: "Tests/PortTestPeer"),
        .executableTarget(
            name: "guides", dependencies: ["RunLoopCore", "MessagePort", "NamedPortServer", "FoundationPorts"],
            path: "Tests/Guides"),
        .executableTarget(name: "wire-peer", path: "Tests/WirePeer"),
        .target(name: "CAllocationCounter", path: "Tests/CAllocationCounter"),
        .executableTarget(
            name: "allocation-peer", dependencies: ["CAllocationCounter", "PortSystem", "RunLoopCore", "MessagePort"],
            path: "Tests/AllocationPeer"),
        .executableTarget(
            name: "main-loop-peer", dependencies: ["PortSystem", "RunLoopCore"], path: "Tests/MainLoopPeer"),
        .testTarget(name: "PortSystemTests", dependencies: ["PortSystem", "TestSupport", "RawRing"]),
        .testTarget(
            name: "RunLoopDifferentialTests",
            dependencies: ["PortSystem", "RunLoopCore", "TestSupport", "main-loop-peer"]),
        .testTarget(
            name: "RunLoopCoreTests",
            dependencies: ["PortSystem", "RunLoopCore", "TestSupport", "main-loop-peer", "refuser"]),
        .testTarget(
            name: "MessagePortTests", dependencies: ["PortSystem", "RunLoopCore", "MessagePort", "TestSupport"]),
        .testTarget(
            name: "NamedPortServerTests",
            dependencies: [
                "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "TestSupport", "ContractServices",
                "port-test-peer", "wire-peer", "refuser",
            ]),
        .testTarget(
            name: "PortContractTests",
            dependencies: [
                "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "TestSupport", "ContractServices",
                "RawRing", "port-test-peer", "allocation-peer",
            ]),
        .testTarget(
            name: "CheckInTests",
            dependencies: ["PortSystem", "RunLoopCore", "MessagePort", "TestSupport", "port-test-peer", "refuser"]),
        .testTarget(
            name: "FuzzingTests",
            dependencies: ["PortSystem", "MessagePort", "NamedPortServer", "TestSupport", "RawRing"],
            path: "Tests/Fuzzing", exclude: ["Corpus", "Programs", "run"]),
        .testTarget(
            name: "CrashTests",
            dependencies: ["PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "TestSupport"]),
        .executableTarget(
            name: "cf-port-peer",
            dependencies: ["FoundationPorts", "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer"],
            path: "Tests/CFPortPeer"),
        .executableTarget(
            name: "mach-port-peer", dependencies: ["FoundationPorts", "PortSystem"], path: "Tests/MachPortPeer"),
        // The same sources in the older language mode, as most of the programs for which they stand.
        .target(
            name: "SpellingSwift5", dependencies: ["FoundationPorts", "MessagePort", "NamedPortServer"],
            path: "Tests/SpellingSwift5"),
        .target(name: "SpellingAliases", dependencies: ["FoundationPorts"], path: "Tests/SpellingAliases"),
        .testTarget(
            name: "FoundationPortsTests",
            dependencies: [
                "CFoundationPorts", "FoundationPorts", "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer",
                "TestSupport", "cf-port-peer", "mach-port-peer", "SpellingSwift5",
                "SpellingAliases", "portctl",
            ] + foundationExamples.keys.sorted().map { .byName(name: $0) }),
        .testTarget(
            name: "ExampleTests",
            dependencies: [
                "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "TestSupport", "portctl",
                "port-test-peer", "guides",
            ] + examples.keys.sorted().map { .byName(name: $0) }),
    ],
    swiftLanguageModes: [.v6]
)

for (name, folder) in examples.sorted(by: { $0.key < $1.key }) {
    package.targets.append(
        .executableTarget(
            name: name, dependencies: ["RunLoopCore", "MessagePort", "NamedPortServer"],
            path: "Examples/\(folder)", exclude: ["README.md"]))
}
for (name, folder) in foundationExamples.sorted(by: { $0.key < $1.key }) {
    package.targets.append(
        .executableTarget(
            name: name, dependencies: ["FoundationPorts", "NamedPortServer"],
            path: "Examples/\(folder)", exclude: ["README.md"]))
}

// libFuzzer brings the main function of its programs, so they are built without the others; see Tests/Fuzzing/run.
if Context.environment["PORT_FUZZING"] != nil {
    let libraries: Set = [
        "CPortShims", "PortCLibrary", "PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer", "RawRing",
    ]
    package.products = []
    package.targets.removeAll { !libraries.contains($0.name) }
    package.targets += [
        .target(
            name: "Fuzzing", dependencies: ["PortSystem", "MessagePort", "NamedPortServer", "RawRing"],
            path: "Tests/Fuzzing",
            exclude: ["Corpus", "Programs", "run", "CorpusTests.swift"]),
        .executableTarget(name: "packet-fuzzer", dependencies: ["Fuzzing"], path: "Tests/Fuzzing/Programs/Packet"),
        .executableTarget(name: "name-fuzzer", dependencies: ["Fuzzing"], path: "Tests/Fuzzing/Programs/Name"),
        .executableTarget(name: "ring-fuzzer", dependencies: ["Fuzzing"], path: "Tests/Fuzzing/Programs/Ring"),
        .executableTarget(name: "snapshot-fuzzer", dependencies: ["Fuzzing"], path: "Tests/Fuzzing/Programs/Snapshot"),
    ]
}

let memorySafeTargets = ["PortSystem", "RunLoopCore", "MessagePort", "NamedPortServer"]

for target in package.targets
where
    !["CPortShims", "CFoundationPorts", "wire-peer", "CAllocationCounter", "CRefusals", "refuser"].contains(target.name)
{
    var settings: [SwiftSetting] = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        // Lets tests force the results of system calls. Tests/optimized defines it for an optimized build; users' have none of it.
        .define("PORT_FAULTS", .when(configuration: .debug)),
    ]
    if memorySafeTargets.contains(target.name) {
        settings.append(.strictMemorySafety())
    }
    // Clients have what settings they have.
    if target.name == "SpellingSwift5" { settings = [.swiftLanguageMode(.v5)] }
    target.swiftSettings = settings
}
