// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

/// The far side of a test of the contract: it holds ports, messages and rights, and does with them what the test
/// orders. It is in the test's process or in another, and is the same there.
package final class FarSide: Sendable {
    /// A port, what its handler remembers, and the thread that serves it, if one does.
    struct Port {
        let port: MachPort
        let servant: Servant
        let lines: Lines
        let thread: ResidentThread?
    }

    /// A right, and the thread that uses it when the test does not wait.
    final class Sender: Sendable {
        let right: SendRight  // immutable
        let lines = Lines()  // guards itself
        let thread: ResidentThread  // guards itself
        let task = Mutex<Task<Void, Never>?>(nil)

        init(_ right: SendRight) throws(PortError) {
            self.right = right
            thread = try startThread("far sender")
        }
    }

    struct Things {
        var count: Int32 = 0
        var ports: [Int32: Port] = [:]
        var messages: [Int32: MachMessage] = [:]
        var senders: [Int32: Sender] = [:]
    }

    /// Where its ports have their addresses; nil when they have none.
    let directory: PortDirectory?  // immutable
    let things = Mutex(Things())

    /// Makes a side without a port.
    package init(directory: PortDirectory?) {
        self.directory = directory
    }

    /// Does what is ordered. What the library throws is in the answer.
    package func carryOut(_ order: Parcel<Order>) -> Parcel<Answer> {
        do throws(PortError) {
            return try perform(order.note, order.parts)
        } catch {
            return Parcel(Answer(error: error))
        }
    }

    /// Ends its ports and its threads.
    package func end() {
        let things = things.withLock { things in
            defer { things = Things() }
            return things
        }
        for port in things.ports.values { end(port) }
        for sender in things.senders.values { end(sender) }
    }

    func end(_ port: Port) {
        guard let thread = port.thread else { return port.servant.end() }
        port.port.invalidate()
        port.servant.end()
        thread.stop()
        thread.join()
    }

    func end(_ sender: Sender) {
        sender.task.withLock { $0.take() }?.cancel()
        sender.thread.stop()
        sender.thread.join()
    }
}

/// Starts a thread with a run loop.
func startThread(_ name: String) throws(PortError) -> ResidentThread {
    do throws(SystemError) {
        return try ResidentThread(name: name)
    } catch {
        throw PortError(error)
    }
}
