// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import Foundation
import MessagePort
import NamedPortServer

/// Names of ports: `NSPortNameServer`. All name servers of this library, CFMessagePort and `PortNameServer` have the same
/// names.
open class NSPortNameServer: NSObject, @unchecked Sendable {
    // @unchecked Sendable: it has no state.

    /// The port with a name; nil when there is none now, or it cannot be looked up: why is on standard error then.
    open func port(forName name: String) -> Port? { port(forName: name, host: nil) }

    /// The same; refused for a host other than nil and "".
    open func port(forName name: String, host: String?) -> Port? {
        guard host ?? "" == "" else {
            refuse("ports of other hosts are not found")
            return nil
        }
        do throws(PortError) {
            let right = try PortNameServer.shared.lookUp(name)
            return right.isDead ? nil : PortObjects.shared.object(for: right)
        } catch {
            if error.code != .nameUnknown { refuse("\(error)") }
            return nil
        }
    }

    /// Gives a port of this process a name, which goes with the port.
    ///
    /// - Returns: false when a port has the name, or the port is another process's. Why is on standard error.
    @discardableResult
    open func registerPort(_ port: Port, name: String) -> Bool {
        guard let receiver = (port as? NSMachPort)?.core.receiver else {
            return refuse("a port that does not receive in this process gets no name")
        }
        do throws(PortError) {
            try PortNameServer.shared.register(receiver, name: name)
            return true
        } catch {
            return refuse("\(error)")
        }
    }

    /// Takes a name away from a port of this process.
    ///
    /// - Returns: whether one had it.
    @discardableResult
    open func removePort(forName name: String) -> Bool { PortNameServer.shared.unregister(name) }

    /// - Returns: false.
    @discardableResult
    fileprivate func refuse(_ reason: String) -> Bool {
        logRefusal(reason, by: "\(type(of: self))")
        return false
    }

    fileprivate func refuseRemoval() -> Bool { refuse("a name is not taken away: invalidate the port") }
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
    open override func removePort(forName name: String) -> Bool { refuseRemoval() }
}

/// `NSMessagePortNameServer`: a name cannot be taken away; invalidate the port.
open class NSMessagePortNameServer: NSPortNameServer, @unchecked Sendable {
    /// The one object.
    public static let shared = NSMessagePortNameServer()

    /// Objective-C's `sharedInstance`.
    open class func sharedInstance() -> NSMessagePortNameServer { shared }

    /// Refused: false.
    open override func removePort(forName name: String) -> Bool { refuseRemoval() }
}

/// As Swift names classes of Foundation.
public typealias MachBootstrapServer = NSMachBootstrapServer
/// As Swift names classes of Foundation.
public typealias MessagePortNameServer = NSMessagePortNameServer
