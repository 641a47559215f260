// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// A chart of the ratios.
struct Chart {
    let results: [CaseResult]

    init(_ results: [CaseResult]) { self.results = results }

    func write(to path: String) throws {}
}
