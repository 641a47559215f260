// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// checkin [--worker-dies] [FILE ...]
//
// Counts the lines, words and bytes of files as wc(1) does, three times, each time with another way of connecting a
// main thread and a worker. README.md beside this file shows the output.

import Foundation
import NamedPortServer

/// A parsed command line.
enum Invocation {
    case acts(files: [String], workerDies: Bool)
    /// This process is the worker of act 3.
    case worker(dies: Bool)

    init(_ arguments: [String]) {
        var rest = arguments.dropFirst()
        let dies = rest.first == "--worker-dies"
        if dies { rest = rest.dropFirst() }
        if rest.first == "--worker" {
            self = .worker(dies: dies)
        } else {
            self = .acts(files: Array(rest), workerDies: dies)
        }
    }
}

func run(_ invocation: Invocation) throws {
    switch invocation {
    case .worker(let dies):
        try workerProcess(dies: dies)
    case .acts(let names, let workerDies):
        let files = try InputFile.read(names.isEmpty ? [InputFile.readmeBesideThisSource] : names)
        try actOne(files)
        try actTwo(files)
        try actThree(files, workerDies: workerDies)
    }
}

do {
    try run(Invocation(CommandLine.arguments))
} catch {
    leave("\(error)")
}
