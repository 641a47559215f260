// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The one file that a client adds when its own files import CoreFoundation, too: its module's names win.

import FoundationPorts

typealias CFString = FoundationPorts.CFString
typealias CFData = FoundationPorts.CFData
typealias CFRunLoopMode = FoundationPorts.CFRunLoopMode
typealias CFMessagePortCallBack = FoundationPorts.CFMessagePortCallBack
