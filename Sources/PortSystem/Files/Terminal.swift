// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// How many characters a terminal shows in a line, and how many lines.
///
/// - Returns: nil when the descriptor is no terminal, or the terminal does not report its size.
package func sysTerminalSize(_ descriptor: CInt) -> (columns: Int, rows: Int)? {
    var (columns, rows): (CInt, CInt) = (0, 0)
    guard unsafe shim_terminal_size(descriptor, &columns, &rows) == 0, columns > 0, rows > 0 else { return nil }
    return (Int(columns), Int(rows))
}

/// Makes a pseudo-terminal of a size, whose program end is for a child.
///
/// - Parameters:
///   - columns: how many characters it shows in a line.
///   - rows: how many lines it has.
/// - Returns: the user's end and the program's end.
/// - Throws: EMFILE, ENFILE, ENOSPC when the system has none left, ENOENT where there are none.
package func sysOpenTerminal(columns: Int, rows: Int) throws(SystemError) -> (CInt, CInt) {
    var (master, slave): (CInt, CInt) = (-1, -1)
    if unsafe shim_open_terminal(CInt(columns), CInt(rows), &master, &slave) != 0 { throw SystemError(errno) }
    return (master, slave)
}

/// A text with escapes in place of characters that would move a terminal's cursor, break a line, or change the
/// direction of the text.
package func harmlessText(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { text, scalar in
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: text += scalar.escaped(asASCII: true)
        default: text.unicodeScalars.append(scalar)
        }
    }
}
