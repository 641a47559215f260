// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc

/// How many bytes of the heap are in use, in all arenas (`malloc_info(3)`); zero where that is not known, and near zero
/// where another heap than the C library's is in use.
package func heapBytes() -> Int {
    typealias Function = @convention(c) (CInt, UnsafeMutableRawPointer) -> CInt
    var (text, size): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    guard let symbol = dlsym(nil, "malloc_info"), let stream = open_memstream(&text, &size) else { return 0 }
    _ = unsafeBitCast(symbol, to: Function.self)(0, UnsafeMutableRawPointer(stream))
    fclose(stream)
    defer { free(text) }
    // After the arenas come the totals: free in "fast" and "rest", mapped one by one, and taken from the system.
    let totals = text.map { String(cString: $0) }?.split(separator: "</heap>").last ?? ""
    func total(_ name: String) -> Int {
        guard let line = totals.split(separator: "\n").first(where: { $0.hasPrefix("<\(name)") }),
            let digits = line.split(separator: "size=\"").last?.prefix(while: \.isNumber)
        else { return 0 }
        return Int(digits) ?? 0
    }
    return total("system type=\"current\"") + total("total type=\"mmap\"") - total("total type=\"fast\"")
        - total("total type=\"rest\"")
}
