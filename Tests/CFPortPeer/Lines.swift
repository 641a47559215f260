// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// Writes a line at once.
func say(_ text: String) { FileHandle.standardOutput.write(Data("\(text)\n".utf8)) }

/// The words of the next line of standard input, at most three; nil at its end.
func nextWords() -> [String]? {
    readLine().map { $0.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init) }
}
