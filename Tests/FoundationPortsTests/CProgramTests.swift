// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import RunLoopCore
import TestSupport
import Testing

/// C programs that link `libFoundationPortsC.so` have CFMessagePort. The toolchain's clang builds one here.
@Suite(
    "FoundationPorts: programs in C", .leakCheck(settles: true, warmingUp: warmUp), .serialized,
    .disabled(if: hasSanitizer, "a program without the sanitizer loads no library with it"))
struct CProgramTests {
    private static let name = "c.program.\(getpid())"

    @Test("the library exports each function of CoreFoundation's header, and that for queues, and no other of CF")
    func exports() async throws {
        let toolchain = try Toolchain.found()
        let header = try String(contentsOfFile: toolchain.headers + "/CoreFoundation/CFMessagePort.h", encoding: .utf8)
        let declared = Set(header.matches(of: /\b(CFMessagePort[A-Za-z]+)\(/).map { String($0.1) })
        #expect(declared.count == 13)
        let symbols = try await output(
            of: toolchain.programs + "/llvm-nm", ["-D", "--defined-only", try Self.library()])
        let exported = symbols.split(separator: "\n").compactMap { $0.firstMatch(of: /\ T (CF[A-Za-z]+)$/)?.1 }
        #expect(Set(exported.map(String.init)) == declared.union(["CFMessagePortSetDispatchQueue"]))
    }

    @Test("a C server answers a Swift client and portctl", arguments: ["server", "queue"])
    func server(kind: String) async throws {
        try await withProgram { program in
            let server = try ChildProcess(program, [kind, Self.name])
            #expect(try await offThePool { try server.nextLine() } == "ready")
            let (status, reply) = try await onNewThread { askFromSwift(Self.name, 5, "hello") }
            #expect(status == kCFMessagePortSuccess)
            #expect(reply == "C got 5: hello")
            let printed = try await output(of: builtProduct("portctl"), ["request", Self.name, "6", "there"])
            #expect(printed == "C got 6: there")
            #expect(try await output(of: builtProduct("portctl"), ["send", Self.name, "0"]) == "")
            #expect(try await server.waitForExit() == ProcessResult(end: .exited(0), output: "ready\n"))
            try await onNewThread { dropReplyPort(Self.name) }
        }
    }

    @Test("a C client asks a Swift server, and one of portctl's")
    func client() async throws {
        try await withProgram { program in
            let server = SwiftServer(name: Self.name)
            let thread = runOnThread(name: "swift-server") { server.run() }
            #expect(server.isReady.wait())
            let printed = try await output(of: program, ["client", Self.name, "7", "hello"])
            #expect(printed == "status 0, reply Swift got 7: hello\n")
            server.stop()
            try await thread.join()
            #expect(try await output(of: program, ["client", Self.name, "7", "hello"]) == "no port\n")

            let tool = try ChildProcess(builtProduct("portctl"), ["serve", Self.name])
            #expect(try await offThePool { try tool.nextLine() }?.contains("serves \(Self.name)") == true)
            #expect(try await output(of: program, ["client", Self.name, "7", "echo"]) == "status 0, reply echo\n")
            tool.kill(SIGTERM)
            _ = try await tool.waitForExit()
        }
    }

    @Test("a C server answers a RemoteMessagePort, and a C client", arguments: ["server", "queue"])
    func serverOfOthers(kind: String) async throws {
        try await withProgram { program in
            let server = try ChildProcess(program, [kind, Self.name])
            #expect(try await offThePool { try server.nextLine() } == "ready")
            let reply = try await onNewThread {
                let remote = try RemoteMessagePort(name: Self.name)
                defer { remote.invalidate() }
                return try remote.request(MachMessage(id: 8, text: "native")).text
            }
            #expect(reply == "C got 8: native")
            for text in ["one", "two"] {
                let printed = try await output(of: program, ["client", Self.name, "9", text])
                #expect(printed == "status 0, reply C got 9: \(text)\n")
            }
            try await onNewThread {
                let remote = try RemoteMessagePort(name: Self.name)
                defer { remote.invalidate() }
                try remote.send(MachMessage(id: 0))
            }
            #expect(try await server.waitForExit() == ProcessResult(end: .exited(0), output: "ready\n"))
        }
    }

    @Test("a C client asks a LocalMessagePort, in this process and in another one")
    func clientOfNative() async throws {
        try await withProgram { program in
            let peer = try await offThePool { try PortBench.peer("native-serve", Self.name) }
            let printed = try await output(of: program, ["client", Self.name, "7", "hello"])
            #expect(printed == "status 0, reply HELLO\n")
            try await peer.waitForExit()

            let (ready, loop) = (Gate("the native server"), Recorder<ThreadRunLoop>())
            let thread = runOnThread(name: "native-server") {
                let local = try LocalMessagePort(name: Self.name) { _, message in
                    Array("native got \(message.id): \(message.text)".utf8)
                }
                try local.schedule(on: .current)
                loop.append(.current)
                ready.open()
                ThreadRunLoop.current.run()
                local.invalidate()
            }
            #expect(ready.wait())
            let again = try await output(of: program, ["client", Self.name, "8", "there"])
            #expect(again == "status 0, reply native got 8: there\n")
            loop.elements.first?.stop()
            try await thread.join()
            #expect(try await output(of: program, ["client", Self.name, "8", "there"]) == "no port\n")
        }
    }

    @Test("C's functions do as CF: one object for a name, one source, a context released as often as retained")
    func facts() async throws {
        try await withProgram { program in
            let result = try await ChildProcess(program, ["facts", Self.name]).waitForExit()
            #expect(result.end == .exited(0))
            #expect(
                result.output.split(separator: "\n") == [
                    "made yes, frees info no, retained 1 times", "the same object yes, frees info yes",
                    "remote yes no", "type yes", "type's name yes", "name yes yes", "context yes", "one source yes",
                    "its own name again no", "callback yes", "invalidated, info C, retained 1 times",
                    "called 1 times, retained 0 times", "valid no no", "source valid no",
                    "a source of an invalid port no", "invalidated, info null, retained 0 times", "no port yes",
                    "the name again yes", "no port yes", "status 0, retained 1 times", "retained 0 times",
                ])
        }
    }

    @Test("the header and the library serve C++, too")
    func cPlusPlus() async throws {
        try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let source = """
                #include <FoundationPorts.h>
                static CFStringRef name = CFSTR("\(Self.name)");
                int main() {
                    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, NULL, NULL, NULL);
                    if (port == NULL) return 1;
                    CFMessagePortSetDispatchQueue(port, dispatch_get_main_queue());
                    CFShow(port);
                    CFMessagePortInvalidate(port);
                    CFRelease(port);
                    return 0;
                }
                """
            let program = try await build(scratch.write(source, to: "program.cpp"), "c++", in: scratch)
            let result = try await ChildProcess(program).waitForExit()
            #expect(result.end == .exited(0))
            #expect(result.errors.contains(Self.name))
        }
    }

    /// The library in C that this package's build has made beside the test program.
    private static func library() throws -> String { try builtProduct("libFoundationPortsC.so") }

    private func withProgram(_ body: @Sendable (String) async throws -> Void) async throws {
        try await withScratchDirectory(leaving: .anyFiles) { scratch in
            let source = Document.packageDirectory + "/Tests/CFPortClient/main.c"
            try await body(try await build(source, "c", in: scratch))
        }
    }

    /// - Returns: the path of the program. A warning is an error.
    private func build(_ source: String, _ language: String, in scratch: ScratchDirectory) async throws -> String {
        let toolchain = try Toolchain.found()
        let products = URL(fileURLWithPath: try Self.library()).deletingLastPathComponent().path
        let program = scratch.path("program")
        let header = Document.packageDirectory + "/Sources/CFoundationPorts/client"
        let arguments =
            ["-x", language, "-fblocks", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
            + ["-DFOUNDATION_PORTS_CONSTANT_STRINGS", "-fconstant-cfstrings", "-fcf-runtime-abi=swift"]
            + ["-isystem", toolchain.headers, "-I", header, source, "-o", program]
            + ["-L", products, "-lFoundationPortsC", "-L", toolchain.libraries]
            + ["-lFoundation", "-ldispatch", "-lBlocksRuntime"]
            + ["-Wl,-rpath,\(products)", "-Wl,-rpath,\(toolchain.libraries)"]
        #expect(try await output(of: toolchain.programs + "/clang", arguments) == "")
        return program
    }

    /// What a program prints; an issue when it fails, or prints an error.
    private func output(of program: String, _ arguments: [String]) async throws -> String {
        let result = try await ChildProcess(program, arguments).waitForExit()
        #expect(result.end == .exited(0))
        #expect(result.errors == "")
        return result.output
    }
}

/// Makes what this process keeps once it has served and asked another process.
@Sendable private func warmUp() throws {
    try warmUpIOThread()
    try warmedUp.get()
}

private let warmedUp = Result {
    let name = "c.program.warm-up.\(getpid())"
    let tool = try ChildProcess(builtProduct("portctl"), ["serve", name])
    #expect(try tool.nextLine() != nil)
    #expect(try onNewThread { askFromSwift(name, 1, "echo").reply } == "echo")
    tool.kill(SIGTERM)
    _ = try tool.waitForExit()
    let server = SwiftServer(name: name)
    let thread = runOnThread(name: "swift-server") { server.run() }
    #expect(server.isReady.wait())
    #expect(try ChildProcess(builtProduct("portctl"), ["request", name, "1"]).waitForExit().end == .exited(0))
    server.stop()
    try thread.join()
    // Not on this thread, one of a pool: its run loop would end with it, at any time.
    try onNewThread { dropReplyPort(name) }
}

/// A port for replies is kept for the next request, and keeps the connection to the last server until then. That of a
/// request whose time is up is not kept: here one to a port of this process that nothing serves.
private func dropReplyPort(_ name: String) {
    let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
    let status = CFMessagePortSendRequest(port, 1, nil, 1, 0, "a private mode" as CFString, nil)
    #expect(status == kCFMessagePortReceiveTimeout)
    CFMessagePortInvalidate(port)
}

private func askFromSwift(_ name: String, _ id: Int32, _ text: String) -> (status: Int32, reply: String?) {
    guard let port = CFMessagePortCreateRemote(nil, name as CFString) else { return (kCFMessagePortIsInvalid, nil) }
    defer { CFMessagePortInvalidate(port) }
    var reply: Unmanaged<CFData>?
    let status = CFMessagePortSendRequest(
        port, id, Data(text.utf8) as CFData, 10, 10, "a private mode" as CFString, &reply)
    return (status, reply.map { String(decoding: $0.takeRetainedValue() as Data, as: UTF8.self) })
}

/// A server on the run loop of the thread that calls `run`.
private final class SwiftServer: Sendable {
    let name: String
    let isReady = Gate("the Swift server is ready")
    private let loop = Recorder<CFRunLoop>()

    init(name: String) { self.name = name }

    func run() {
        let port = CFMessagePortCreateLocal(
            nil, name as CFString,
            { _, id, data, _ in
                let text = String(decoding: (data as Data?) ?? Data(), as: UTF8.self)
                return .passRetained(Data("Swift got \(id): \(text)".utf8) as CFData)
            }, nil, nil)
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
        loop.append(CFRunLoopGetCurrent())
        isReady.open()
        CFRunLoopRun()
        CFMessagePortInvalidate(port)
    }

    func stop() {
        guard let loop = loop.elements.first else { return }
        CFRunLoopPerformBlock(loop, CFRunLoopMode.defaultMode.rawValue) { CFRunLoopStop(loop) }
        CFRunLoopWakeUp(loop)
    }
}
