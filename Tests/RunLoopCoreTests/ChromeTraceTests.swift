// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct ChromeTraceTests {
    private let nasty = "a \"quoted\" \\ name,\n\ttab, bell \u{7}, NUL \0, 統計 🌀 \u{2028}"

    @Test("a Chrome trace is JSON in which begins and ends nest per thread")
    func nesting() async throws {
        let tracer = RunLoopTracer()
        for _ in 0..<2 {
            try await onLoop { loop in
                tracer.attach(to: loop)
                loop.add(idleSource(), to: "inner \"mode\"")
                loop.add(
                    RunLoopTimer(name: nasty, fireDate: .distantPast) { _ in
                        loop.run(mode: "inner \"mode\"", for: .zero)
                    })
                loop.run(for: .zero)
            }
        }
        let events = try chromeEvents(tracer.chromeTrace)
        let threads = Dictionary(grouping: events.filter { $0.phase != "M" }, by: \.thread)
        #expect(threads.count == 2)
        for events in threads.values {
            var open: [ChromeEvent] = []
            for event in events {
                if event.phase == "B" { open.append(event) }
                guard event.phase == "E" else { continue }
                let last = open.popLast()
                let begin = try #require(last)
                #expect(begin.time <= event.time && begin.category == event.category)
                if begin.name == "run in inner \"mode\"" {
                    #expect(open.last?.name?.hasPrefix("timer \(nasty.debugDescription) #") == true)
                    #expect(open.last?.category == "timer")
                }
            }
            #expect(open.isEmpty)
            #expect(events.contains { $0.name == "run in inner \"mode\"" })
        }
        let named = events.filter { $0.phase == "M" && $0.name == "thread_name" }.compactMap(\.thread)
        #expect(named.count == 2 && Set(named) == Set(threads.keys.compactMap { $0 }))
    }

    @Test("any string comes out of JSON as it went in")
    func strings() throws {
        let ascii = (UInt8(0)..<128).reduce(into: "") { $0.unicodeScalars.append(Unicode.Scalar($1)) }
        let texts = [nasty, "", "\"", "\\", "\\u0041", ascii]
        for text in texts {
            var bytes: [UInt8] = []
            JSONValue.object([(text, .text(text)), ("n", .number(-3)), ("f", .flag(true))]).append(to: &bytes)
            let parsed = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
            #expect(parsed[text] as? String == text)
            #expect(parsed["n"] as? Int == -3 && parsed["f"] as? Bool == true)
        }
    }

    @Test("a trace without events is JSON too")
    func empty() throws {
        #expect(try chromeEvents(RunLoopTracer().chromeTrace).isEmpty)
    }

    @Test("a trace is written to a descriptor as a whole, also when that accepts a little at a time")
    func writing() async throws {
        let tracer = RunLoopTracer()
        try await onLoop { loop in
            tracer.attach(to: loop)
            for number in 0..<600 { loop.perform(name: "block \(number)") {} }
            loop.run(for: .zero)
        }
        let pipe = try TestPipe(isBlocking: false)
        let reader = runOnThread { () throws -> [UInt8] in
            var bytes: [UInt8] = []
            while true {
                _ = try sysPoll(pipe.reading.rawValue, .readable, until: Watchdog.deadline)
                guard let piece = try pipe.take(4_096) else { continue }
                bytes += piece
                if bytes.suffix(3) == Array("]}\n".utf8) { return bytes }
            }
        }
        let writing = pipe.writing.rawValue  // the thread that writes may outlive the test by a moment
        try await offThePool { try tracer.writeChromeTrace(to: writing) }
        let written = try await reader.join()
        #expect(written.count > 100_000)
        #expect(String(decoding: written, as: UTF8.self) == tracer.chromeTrace)
        #expect(throws: SystemError(EBADF)) { try tracer.writeChromeTrace(to: pipe.reading.rawValue) }
    }

    @Test("writing a trace to a pipe without a reader throws EPIPE and ends nothing")
    func brokenPipe() async throws {
        let tracer = RunLoopTracer()
        try await onLoop { loop in
            tracer.attach(to: loop)
            loop.run(for: .zero)
            unblockBrokenPipeSignal()  // the process that started the tests may have blocked it
            let writing = try TestPipe(isBlocking: false).writing
            #expect(throws: SystemError(EPIPE)) { try tracer.writeChromeTrace(to: writing.rawValue) }
        }
    }
}

private func unblockBrokenPipeSignal() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGPIPE)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
}

private struct ChromeEvent {
    var phase: String
    var category: String?
    var name: String?
    var time: Double
    var thread: Int?
}

private func chromeEvents(_ text: String) throws -> [ChromeEvent] {
    let parsed = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    let events = try #require(parsed["traceEvents"] as? [[String: Any]])
    return try events.map { event in
        let phase = try #require(event["ph"] as? String)
        #expect(event["pid"] as? Int == Int(sysProcessID()))
        let time = phase == "M" ? 0 : try #require(event["ts"] as? Double)
        return ChromeEvent(
            phase: phase, category: event["cat"] as? String, name: event["name"] as? String, time: time,
            thread: event["tid"] as? Int)
    }
}
