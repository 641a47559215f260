// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import Testing

@Suite("SystemError") struct SystemErrorTests {
    @Test("the description is the C library's sentence with the number")
    func description() {
        #expect("\(SystemError(EMFILE))" == "Too many open files (errno 24)")
        #expect("\(SystemError(99_999))".hasSuffix("(errno 99999)"))
    }

    @Test("EMFILE and ENFILE are the descriptor limits")
    func descriptorLimit() {
        #expect(SystemError(EMFILE).isDescriptorLimit)
        #expect(SystemError(ENFILE).isDescriptorLimit)
        #expect(!SystemError(ENOMEM).isDescriptorLimit)
    }

    @Test("ENOBUFS and ENOMEM are a shortage of memory")
    func memoryShortage() {
        #expect(SystemError(ENOBUFS).isMemoryShortage)
        #expect(SystemError(ENOMEM).isMemoryShortage)
        #expect(!SystemError(EMFILE).isMemoryShortage)
    }
}
