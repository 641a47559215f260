// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

/// A port of another library.
private final class ForeignPort: Port {}

@Suite("Messages of NSMachPort (D-N2, D-N3)", .machPorts, .serialized) struct NSMachPortMessageTests {
    /// What a message had, by value.
    private struct Seen: Equatable {
        var number: UInt32
        var parts: [String]
        var replyIs: String
        var arrivedAt: String
    }

    @Test("D-N2: the receiver's sendPort is the sender's receivePort, its receivePort is itself; data and ports arrive")
    func directions() async throws {
        try await onNewThread {
            let (mine, theirs, extra) = (NSMachPort(), NSMachPort(), MessagePort())
            let seen = Recorder<Bool>()
            let handler = Handler { message in
                seen.append(message.sendPort === theirs && message.receivePort === mine && message.msgid == 77)
                let components = message.components ?? []
                seen.append(components.count == 4 && components[0] as? Data == Data([1, 2]))
                seen.append((components[1] as? NSData)?.length == 0 && components[2] as AnyObject === extra)
                seen.append(components[3] as AnyObject === mine)
            }
            mine.setDelegate(handler)
            RunLoop.current.add(mine, forMode: .default)
            let message = PortMessage(send: mine, receive: theirs, components: [Data([1, 2]), NSData(), extra, mine])
            message.msgid = 77
            #expect(message.send(before: .distantPast))
            runFoundationLoop(until: { seen.count == 4 })
            #expect(seen.elements == [true, true, true, true])
            for port in [mine, theirs, extra] { port.invalidate() }
        }
    }

    @Test("D-N2: a message without a receivePort has no sendPort, and one without components none")
    func empty() async throws {
        try await onNewThread {
            let (port, seen) = (NSMachPort(), Recorder<Bool>())
            let handler = Handler { message in
                seen.append(message.sendPort == nil && message.components?.isEmpty != false && message.msgid == 0)
            }
            port.setDelegate(handler)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(before: .distantPast, components: nil, from: nil, reserved: 0))
            #expect(PortMessage(send: port, receive: nil, components: nil).send(before: .distantPast))
            runFoundationLoop(until: { seen.count == 2 })
            #expect(seen.elements == [true, true])
            port.invalidate()
        }
    }

    @Test("D-N2: components of another kind, ports of Foundation's, and an invalid or foreign receivePort: not sent")
    func refusedComponents() {
        let (port, ended) = (NSMachPort(), NSMachPort())
        ended.invalidate()
        for component in ["text" as Any, 7, NSNumber(value: 1), NSNull(), NSObject(), [Data()], Date()] {
            #expect(!port.send(1, [component]), "\(component)")
            #expect(!port.send(1, [Data(), component, port]), "\(component)")
        }
        #expect(!port.send(1, from: ended))
        let foreign = ForeignPort()
        #expect(!port.send(1, [foreign]))
        #expect(!port.send(1, from: foreign))
        #expect(!NSPortNameServer().registerPort(foreign, name: freshName("foreign")))
        // None of them has used room.
        for number in 0..<5 { #expect(port.send(number, before: .distantPast)) }
        port.invalidate()
    }

    @Test("D-N2: an invalid port among the components arrives as a port that is not valid")
    func deadComponent() async throws {
        try await onNewThread {
            let (port, ended, seen) = (NSMachPort(), NSMachPort(), Recorder<Bool>())
            ended.invalidate()
            let handler = Handler { seen.append(($0.components?.first as? Port)?.isValid == false) }
            port.setDelegate(handler)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(1, [ended]))
            runFoundationLoop(until: { seen.count == 1 })
            #expect(seen.elements == [true])
            #expect(port.isValid)
            port.invalidate()
        }
    }

    @Test("D-N2, D-N6: a past date sends while fewer than five wait, a later one waits until then or for room")
    func dates() async throws {
        let port = NSMachPort()
        for number in 0..<5 { #expect(port.send(number, before: number == 0 ? .distantPast : Date())) }
        #expect(!port.send(5, before: .distantPast) && !port.send(5, before: Date()))
        #expect(!port.send(5, before: Date(timeIntervalSinceReferenceDate: .nan)))
        let start = Date()
        #expect(!port.send(5, before: Date(timeIntervalSinceNow: 0.02)))
        #expect(Date().timeIntervalSince(start) >= 0.02)
        let sender = runOnThread { port.send(5, before: .distantFuture) }
        let numbers = Numbers()
        try await onNewThread {
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .default)
            runFoundationLoop(until: { numbers.all.count == 6 })
            port.invalidate()
        }
        #expect(try await sender.join())
        #expect(numbers.all == [0, 1, 2, 3, 4, 5])
    }

    @Test("D-N5: the end of a port ends a send that waits for room")
    func endWhileWaiting() async throws {
        let port = NSMachPort()
        for number in 0..<5 { #expect(port.send(number)) }
        let sender = runOnThread { port.send(5, before: .distantFuture) }
        port.invalidate()
        #expect(try await sender.join() == false)
    }

    @Test("D-N2: numbers are carried in 32 bits")
    func numbers() async throws {
        try await onNewThread {
            let (port, numbers) = (NSMachPort(), Numbers())
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .default)
            for number in [Int(UInt32.max), -1, 1 << 32 | 9, Int.min] { #expect(port.send(number)) }
            runFoundationLoop(until: { numbers.all.count == 4 })
            #expect(numbers.all == [.max, .max, 9, 0])
            port.invalidate()
        }
    }

    @Test("D-N3: there is one object for one right, sets have one element, and the tables are empty afterwards")
    func identity() async throws {
        let before = PortObjects.shared.counts
        try await onNewThread {
            let (port, other) = (NSMachPort(), NSMachPort())
            #expect(port != other && port.machPort != other.machPort && port.machPort != 0)
            #expect(NSMachPort.port(withMachPort: port.machPort) === port)
            #expect(NSMachPort.port(withMachPort: port.machPort, options: [.deallocateSendRight]) === port)
            #expect(port.copy() as AnyObject === port)
            let second = NSMachPort(machPort: port.machPort)
            #expect(second == port && second.hash == port.hash && second.machPort == port.machPort)
            #expect(Set<Port>([port, second, other]).count == 2)
            let name = freshName("identity")
            #expect(NSPortNameServer().registerPort(port, name: name))
            #expect(NSPortNameServer().port(forName: name) === port)
            port.invalidate()
            #expect(second == port && !second.isValid)
            other.invalidate()
        }
        #expect(PortObjects.shared.counts == before)
    }

    @Test("D-N3: a second object for a port shares its delegate and its end, and does not end it when it is released")
    func secondObject() async throws {
        try await onNewThread {
            let (port, numbers) = (NSMachPort(), Numbers())
            port.setDelegate(numbers)
            RunLoop.current.add(port, forMode: .default)
            for number in 0..<3 {
                let second = NSMachPort(machPort: port.machPort, options: [.deallocateReceiveRight])
                #expect(second.delegate() === numbers && second.isValid && second.send(number))
            }
            runFoundationLoop(until: { numbers.all.count == 3 })
            let second = NSMachPort(machPort: port.machPort)
            let counters = [InvalidityCounter(port), InvalidityCounter(second)]
            second.invalidate()
            #expect(!port.isValid && counters.map(\.value) == [1, 1])
            #expect(!RunLoop.current.run(mode: .default, before: .watchdog))
        }
    }

    @Test("D-N6: a number that no port has makes an invalid port, which does nothing")
    func unknownNumbers() {
        let port = NSMachPort()
        let number = port.machPort
        port.invalidate()
        for unknown in [0, 1, UInt32.max] {
            let made = NSMachPort(machPort: unknown)
            #expect(!made.isValid && made.machPort == unknown && !made.send(1) && made == made && made != port)
            #expect(!NSMachPort.port(withMachPort: unknown).isValid)
            #expect(NSMachPort.port(withMachPort: unknown) is NSMachPort)
            RunLoop.main.add(made, forMode: .default)
            RunLoop.main.remove(made, forMode: .default)
            made.invalidate()
            #expect(!port.send(1, [made]))
        }
        #expect(!NSMachPort(machPort: number).isValid)
    }
}
