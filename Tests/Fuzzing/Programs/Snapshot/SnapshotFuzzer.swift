// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Fuzzing

/// What libFuzzer calls for each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    SnapshotFuzzing.check(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
