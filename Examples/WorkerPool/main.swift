// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A pool of worker processes. When a job kills its worker, the pool launches another one and tries the job once more.

import Foundation
import NamedPortServer

/// The messages of the pool to its workers.
enum WorkerMessage {
    /// A number and how often it was tried before; the reply is its square.
    static let square: Int32 = 1
    static let leave: Int32 = 2
}

do {
    if CommandLine.arguments.dropFirst() == ["--worker"] {
        try workerMain()
    } else {
        let pool = Pool(jobs: 1...8, attempts: 2)
        Task {
            do {
                try await pool.run(workers: 3)
                pool.printReport()
            } catch {
                FileHandle.standardError.write(Data("pool: the pool gives up: \(error)\n".utf8))
                exit(1)
            }
            ThreadRunLoop.main.stop()
        }
        ThreadRunLoop.main.run()
    }
} catch {
    FileHandle.standardError.write(Data("pool: \(error)\n".utf8))
    exit(1)
}
