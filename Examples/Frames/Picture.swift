// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Pictures of 640 by 480 pixels, three bytes each.
enum Picture {
    static let (width, height) = (640, 480)
    static let byteCount = width * height * 3
    /// What a file begins with (PPM).
    static let head = "P6\n\(width) \(height)\n255\n"

    /// Draws a gradient, over which a bright bar moves from picture to picture.
    static func draw(_ number: Int, in bytes: inout MutableRawSpan) {
        for y in 0..<height {
            for x in 0..<width {
                let isBar = (x - number * 20) % width < 20 && x >= number * 20
                let pixel = (y * width + x) * 3
                bytes.storeBytes(of: isBar ? 255 : UInt8(x * 255 / width), toByteOffset: pixel, as: UInt8.self)
                bytes.storeBytes(of: isBar ? 255 : UInt8(y * 255 / height), toByteOffset: pixel + 1, as: UInt8.self)
                bytes.storeBytes(of: isBar ? 255 : 96, toByteOffset: pixel + 2, as: UInt8.self)
            }
        }
    }
}
