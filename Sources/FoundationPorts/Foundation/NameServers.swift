// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import Foundation
import MessagePort
import NamedPortServer

/// Names of ports: `NSPortNameServer`. All name servers of this library, CFMessagePort and `PortNameServer` have the same
/// names.
open class NSPortNameServer: NSObject, @unchecked Sendable {
    // @unchecked Sendable: it has no state.

    /// The port with a name; nil when there is none now.
    open func port(forName name: String) -> Port? { port(forName: name, host: nil) }

    /// The same; nil also for a host other than nil and "".
    open func port(forName name: String, host: String?) -> Port? {
        guard host ?? "" == "", let right = try? PortNameServer.shared.lookUp(name), !right.isDead else { return nil }
        return PortObjects.shared.object(for: right)
    }

    /// Gives a port of this process a name, which goes with the port.
    ///
    /// - Returns: false when a port has the name, or the port is another process's. Why is on standard error.
    @discardableResult
    open func registerPort(_ port: Port, name: String) -> Bool {
        guard let receiver = (port as? NSMachPort)?.core.receiver else {
            logRefusal("a port that does not receive in this process gets no name")
            return false
        }
        do throws(PortError) {
            try PortNameServer.shared.register(receiver, name: name)
            return true
        } catch {
            logRefusal("\(error)")
            return false
        }
    }

    /// Takes a name away from a port of this process.
    ///
    /// - Returns: whether one had it.
    @discardableResult
    open func removePort(forName name: String) -> Bool { PortNameServer.shared.unregister(name) }
}

/// `NSMachBootstrapServer`: a name cannot be taken away; invalidate the port.
open class NSMachBootstrapServer: NSPortNameServer, @unchecked Sendable {
    /// The one object.
    public static let shared = NSMachBootstrapServer()

    /// Objective-C's `sharedInstance`.
    open class func sharedInstance() -> NSMachBootstrapServer { shared }

    /// The port of a service.
    open func servicePort(withName name: String) -> Port? { port(forName: name) }

    /// Refused: false.
    open override func removePort(forName name: String) -> Bool { false }
}

/// `NSMessagePortNameServer`: a name cannot be taken away; invalidate the port.
open class NSMessagePortNameServer: NSPortNameServer, @unchecked Sendable {
    /// The one object.
    public static let shared = NSMessagePortNameServer()

    /// Objective-C's `sharedInstance`.
    open class func sharedInstance() -> NSMessagePortNameServer { shared }

    /// Refused: false.
    open override func removePort(forName name: String) -> Bool { false }
}

/// As Swift names classes of Foundation.
public typealias MachBootstrapServer = NSMachBootstrapServer
/// As Swift names classes of Foundation.
public typealias MessagePortNameServer = NSMessagePortNameServer
