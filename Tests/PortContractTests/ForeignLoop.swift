// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Dispatch
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// A loop that is not the library's and waits for a doorbell.
enum ForeignLoop: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// Reported while readable; receives one message per pass.
    case epoll
    /// Reported when something changes.
    case edgeTriggered
    /// The same; receives one message for each report, as the loops of `FoundationPorts`.
    case onePerEdge
    case dispatch, coreFoundation

    var testDescription: String { rawValue }

    /// Receives `count` messages.
    ///
    /// - Returns: their ids.
    func receive(_ count: Int, from port: MachPort) throws -> [Int32] {
        let doorbell = try port.doorbell()
        let ids = Recorder<Int32>()
        switch self {
        case .epoll, .edgeTriggered, .onePerEdge: try wait(for: doorbell, count, ids, port)
        case .dispatch: dispatch(doorbell, count, ids, port)
        case .coreFoundation: try runCoreFoundation(doorbell, count, ids, port)
        }
        return ids.elements
    }

    private func wait(for doorbell: PortDoorbell, _ count: Int, _ ids: Recorder<Int32>, _ port: MachPort) throws {
        let set = try EpollSet()
        let edge: UInt32 = self == .epoll ? 0 : 1 << 31
        try set.add(
            doorbell.descriptor, EpollEvents(rawValue: EpollEvents.readable.rawValue | edge), key: 7)
        while ids.count < count {
            let reports = set.wait(until: Watchdog.deadline)
            #expect(reports.map(\.key) == [7])
            if reports.isEmpty { break }
            if self == .onePerEdge {
                if let message = try port.tryReceiveAfterEdge() { ids.append(message.id) }
                continue
            }
            while let message = try port.tryReceive() {
                ids.append(message.id)
                if edge == 0 { break }
            }
        }
    }

    private func dispatch(_ doorbell: PortDoorbell, _ count: Int, _ ids: Recorder<Int32>, _ port: MachPort) {
        let gone = Gate("the end of the dispatch source")
        let queue = DispatchQueue(label: "doorbell")
        let source = DispatchSource.makeReadSource(fileDescriptor: doorbell.descriptor, queue: queue)
        source.setEventHandler { while let message = try? port.tryReceive() { ids.append(message.id) } }
        source.setCancelHandler { gone.open() }
        source.activate()
        ids.waitUntilCount(count)
        source.cancel()
        gone.wait()
    }

    private func runCoreFoundation(
        _ doorbell: PortDoorbell, _ count: Int, _ ids: Recorder<Int32>, _ port: MachPort
    ) throws {
        let info = ForeignInfo(port, doorbell.descriptor, ids)
        let source = try #require(info.makeSource())
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode)
        while ids.count < count {
            let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, true)
            #expect(result == .handledSource)
            if result != .handledSource { break }
        }
        CFRunLoopSourceInvalidate(source)
    }
}

extension Trait where Self == LeakCheck {
    /// The leak check, for tests of other loops: CoreFoundation's main loop, which it makes with the first one, stays,
    /// as what other contract tests leave.
    static var foreignLoops: Self {
        .leakCheck(
            settles: true,
            warmingUp: {
                try warmUpIOThread()
                _ = CFRunLoopGetMain()
            })
    }
}

/// What CoreFoundation's source gets: the port, and where to put the messages.
private final class ForeignInfo: Sendable {
    let port: MachPort
    let descriptor: CInt
    let ids: Recorder<Int32>

    init(_ port: MachPort, _ descriptor: CInt, _ ids: Recorder<Int32>) {
        self.port = port
        self.descriptor = descriptor
        self.ids = ids
    }

    static func at(_ pointer: UnsafeMutableRawPointer?) -> ForeignInfo? {
        pointer.map { Unmanaged<ForeignInfo>.fromOpaque($0).takeUnretainedValue() }
    }

    /// A source for the doorbell. CoreFoundation reports changes only, so it receives messages until there is none.
    func makeSource() -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.getPort = { ForeignInfo.at($0)?.descriptor ?? -1 }
        context.perform = { pointer in
            guard let info = ForeignInfo.at(pointer) else { return }
            while let message = try? info.port.tryReceive() { info.ids.append(message.id) }
        }
        return withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
    }
}
