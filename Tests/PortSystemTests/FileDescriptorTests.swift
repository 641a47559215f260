// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

@Suite("FileDescriptor", .leakCheck) struct FileDescriptorTests {
    @Test("a descriptor is closed when its owner is done with it, and not before")
    func ownership() throws {
        let number: CInt
        do {
            let descriptor = try sysOpen("/dev/null", .reading)
            number = descriptor.raw
            #expect(isOpen(number))
            _ = consume descriptor
        }
        #expect(!isOpen(number))
    }

    @Test("a released descriptor stays open: the caller closes it")
    func release() throws {
        let number = try sysOpen("/dev/null", .reading).release()
        #expect(isOpen(number))
        sysClose(number)
        #expect(!isOpen(number))
    }

    @Test("a duplicate outlives the original and is close-on-exec")
    func duplicate() throws {
        let copy: FileDescriptor
        do {
            let original = try sysOpen("/dev/null", .reading)
            copy = try original.duplicate()
            #expect(copy.raw != original.raw)
            _ = consume original
        }
        #expect(isOpen(copy.raw))
        #expect(isCloseOnExec(copy.raw))
    }

    @Test("a shared descriptor is closed when the last reference goes")
    func shared() throws {
        var first: SharedDescriptor? = SharedDescriptor(try sysOpen("/dev/null", .reading))
        var second = first
        let number = try #require(first).rawValue
        first = nil
        #expect(isOpen(number))
        #expect(second != nil)
        second = nil
        #expect(!isOpen(number))
    }

    @Test("a shared descriptor made by duplicating leaves the original to the caller")
    func sharedDuplicate() throws {
        let original = try sysOpen("/dev/null", .reading)
        var shared: SharedDescriptor? = try SharedDescriptor(duplicating: original.raw)
        let number = try #require(shared).rawValue
        #expect(number != original.raw)
        #expect(isCloseOnExec(number))
        shared = nil
        #expect(!isOpen(number))
        #expect(isOpen(original.raw))
    }

    @Test("a duplicate of a shared descriptor is the caller's to close")
    func duplicateOfShared() throws {
        let shared = SharedDescriptor(try sysOpen("/dev/null", .reading))
        let copy = try shared.duplicate()
        #expect(isCloseOnExec(copy))
        sysClose(copy)
        #expect(isOpen(shared.rawValue))
    }

    @Test("a number that is not open cannot be duplicated")
    func closedNumber() {
        #expect(throws: SystemError(EBADF)) { _ = try SharedDescriptor(duplicating: -1) }
    }
}
