// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// guides NAME
//
// Does what the code in a guide of the documentation does. Tests/ExampleTests/GuideTests.swift compares the code, and
// what it prints, with the guide.

import Foundation
import RunLoopCore

/// Prints a line at once, also into a pipe: so the lines of two processes come in the order of events.
func print(_ value: Any) {
    Swift.print(value)
    fflush(nil)
}

/// Runs code on a thread that is not the main one, whose loop has nothing to serve yet.
func onThread(_ body: @escaping @Sendable () throws -> Void) throws {
    let thread = Thread {
        do {
            try body()
        } catch {
            print("guides: \(error)")
        }
        ThreadRunLoop.main.stop()
    }
    thread.start()
    ThreadRunLoop.main.run()
}

/// Runs the code of a task while the main thread runs its loop.
func inTask(_ body: @escaping @Sendable () async throws -> Void) throws {
    Task.detached {
        do {
            try await body()
        } catch {
            print("guides: \(error)")
        }
        ThreadRunLoop.main.stop()
    }
    ThreadRunLoop.main.run()
}

switch CommandLine.arguments.dropFirst().first {
case "FirstLoop": try firstLoop()
case "RunLoopsFromZero": try onThread(runLoopsFromZero)
case "FirstPorts": try firstPorts()
case "PortsAndRights": try portsAndRights()
case "RequestsAndErrors": try requestsAndErrors()
case "CheckingIn": try checkingIn()
case "worker": try checkingInWorker()
case "BulkData": try onThread { try bulkData() }
case "PortsInTasks": try inTask { try await portsInTasks() }
case "FirstService": try runCounter()
case "client": try askCounter()
case "Porting": try porting()
case "BringYourMacProgram": bringYourMacProgram()
case "Activation": try activation()
case "Tracing": try tracing()
case "Names": try inTask { try await names() }
case let name: fatalError("guides: there is no guide \(name ?? "without a name"); see main.swift.")
}
