// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

extension Double {
    /// The number as every report for people shows it: three significant digits, or from 100 on the whole number, with
    /// separated thousands. JSON has all digits.
    var figure: String {
        if self == 0 { return "0" }
        if abs(self) < 100 { return String(format: "%.3g", self) }
        let whole = String(format: "%.0f", abs(self))
        let head = (whole.count - 1) % 3 + 1
        var text = (self < 0 ? "-" : "") + whole.prefix(head)
        var rest = whole.dropFirst(head)
        while !rest.isEmpty {
            text += "," + rest.prefix(3)
            rest = rest.dropFirst(3)
        }
        return text
    }
}
