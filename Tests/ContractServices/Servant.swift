// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort
import PortSystem
import RunLoopCore
import Synchronization

/// Longer than any wait lasts, the end of one that would hang: as long as the test's watchdog.
package let serviceTimeout: Duration = {
    guard let text = sysEnvironment("PORT_TEST_WATCHDOG"), let seconds = Int(text) else { return .seconds(60) }
    return .seconds(seconds > 0 ? seconds : 86_400)
}()

/// The memory of a port that serves a test: what it holds, and where it reports what it saw.
package final class Servant: Sendable {
    /// Where it hands requests on to; nil when it does not.
    let other: SendRight?  // immutable
    /// Reports what it saw, one line at a time.
    let say: @Sendable (String) -> Void  // immutable
    let retained = Mutex<[MachMessage]>([])
    let made = Mutex<[MachPort]>([])
    let pool = MemoryPool()

    /// Makes a servant that has seen nothing.
    package init(other: SendRight? = nil, say: @escaping @Sendable (String) -> Void) {
        self.other = other
        self.say = say
    }

    /// Ends the ports that it made, and releases what it holds.
    package func end() {
        for port in take(made) { port.invalidate() }
        _ = take(retained)
    }

    /// Removes all elements.
    func take<Element: Sendable>(_ list: borrowing Mutex<[Element]>) -> [Element] {
        list.withLock { list in
            defer { list = [] }
            return list
        }
    }

    /// Stores a message, and reports it.
    func keep(_ message: MachMessage) {
        retained.withLock { $0.append(message) }
        say("retained \(message.id)")
    }

    /// Removes the message that it has held for the longest time.
    func takeOldest() -> MachMessage? {
        retained.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    /// Replies, and reports what failed.
    func reply(to message: MachMessage, _ reply: MachMessage) {
        do throws(PortError) {
            try message.reply(reply, within: serviceTimeout)
        } catch {
            say(sentence(error))
        }
    }
}

/// An error as one line.
package func sentence(_ error: PortError) -> String {
    "error \(error.code)" + (error.owner.map { ", owner \($0)" } ?? "")
}
