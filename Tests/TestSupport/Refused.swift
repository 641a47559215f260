// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CRefusals
import Glibc
import PortSystem

extension ChildProcess {
    /// Starts a program for which the kernel refuses system calls, with the words of `Tests/CRefusals`.
    package static func refusing(
        _ words: [String], _ program: String, _ arguments: [String] = [], environment: [String: String?] = [:]
    ) throws -> ChildProcess {
        try ChildProcess(
            try builtProduct("refuser"), words + ["--", program] + arguments,
            environment: environment.merging(withoutLeakSearch) { $1 })
    }
}

/// Makes the kernel refuse system calls from now on, for all threads of this process and permanently: in an exit test
/// only.
package func refuseCalls(_ words: String...) {
    searchForLeaks()  // the calls for it may be among them
    var words: [UnsafePointer<CChar>?] = words.map { UnsafePointer(strdup($0)) }
    if let problem = refuse_calls(&words, CInt(words.count), nil) {
        fatalError("\(String(cString: problem)) \(CommandLine.arguments)")
    }
}
