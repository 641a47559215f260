// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Foundation
import MessagePort

/// Foundation's run loop watches the port's doorbell, which is a descriptor that is readable while messages wait.
func inFoundation() throws {
    let port = MachPort()
    let source = try DoorbellSource(port) { message in
        print("Foundation's run loop: \(message.text)")
        if isLast(message) { port.invalidate() }
    }
    source.add(to: CFRunLoopGetCurrent())
    sendMessages(to: port)
    while port.isValid, RunLoop.current.run(mode: .default, before: .distantFuture) {}
    source.invalidate()
}

/// A source of CoreFoundation for the doorbell of a port.
final class DoorbellSource {
    private let port: MachPort
    private let doorbell: PortDoorbell
    private let handler: (MachMessage) -> Void
    private var source: CFRunLoopSource?

    init(_ port: MachPort, _ handler: @escaping (MachMessage) -> Void) throws {
        self.port = port
        self.handler = handler
        doorbell = try port.doorbell()
    }

    /// Add it on the thread of the loop, and retain this object until it was invalidated.
    func add(to loop: CFRunLoop?) {
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.getPort = { DoorbellSource.at($0)?.doorbell.descriptor ?? -1 }
        context.perform = { DoorbellSource.at($0)?.receive() }
        source = withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
        CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
    }

    func invalidate() {
        if let source { CFRunLoopSourceInvalidate(source) }
        source = nil
    }

    /// CoreFoundation reports changes only, so this receives all messages.
    private func receive() {
        do {
            while port.isValid, let message = try port.tryReceive() { handler(message) }
        } catch {
            print("Foundation's run loop: \(error)")
        }
    }

    private static func at(_ info: UnsafeMutableRawPointer?) -> DoorbellSource? {
        info.map { Unmanaged<DoorbellSource>.fromOpaque($0).takeUnretainedValue() }
    }
}
