// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import Testing

/// Expects that an exit test, whose standard error was observed, printed this there.
package func expectSentence(
    _ sentence: String, in result: ExitTest.Result?, sourceLocation: SourceLocation = #_sourceLocation
) {
    let errors = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(errors.contains(sentence), sourceLocation: sourceLocation)
}
