// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// The labels of the sources of which a program may have many.
extension SourceLabel {
    static let portMessages = SourceLabel("port messages")
    static let portNotice = SourceLabel("port notice")
    static let portReceive = SourceLabel("port receive")
    static let portReplies = SourceLabel("port replies")
}
