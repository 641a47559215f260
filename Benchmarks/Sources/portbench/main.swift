// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Foundation

// Each line is written when it is printed, also into a pipe.
bare_print_by_line()

do {
    try Program.run(Array(CommandLine.arguments.dropFirst()))
} catch let mistake as Options.Mistake {
    Program.complain("\(mistake.text)\n\n\(Options.help)")
    exit(EX_USAGE)
} catch {
    Program.complain("\(error)")
    exit(EXIT_FAILURE)
}
