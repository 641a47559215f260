// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import RunLoopCore

/// Answers messages to a named port until the input ends: does what their ids ask for (`Act`).
func serve(_ directory: String, _ name: String, queueLimit: Int, _ rules: Rules) throws(PortError) {
    let servant = Servant(say: say)
    let names = try nameServer(in: directory)
    let port = try LocalMessagePort(
        name: name, nameServer: names, queueLimit: queueLimit, handler: { servant.answer($0.port, $1) })
    try rules.hold(for: port.port, names)
    try port.schedule()
    say("ready")
    runUntilInputEnds()
    port.invalidate()
    servant.end()
}

/// Is the far side of a test of the contract: carries out the orders that come to the name, until the input ends. Its
/// ports have their addresses in another directory.
func beFarSide(_ directory: String, _ name: String, _ ports: String) throws(PortError) {
    let side = FarSide(directory: try PortDirectory.open(path: ports))
    let orders = MachPort { _, message in
        do throws(PortError) {
            let answer = side.carryOut(try Parcel(unpacking: message))
            try message.reply(answer.packed, within: serviceTimeout)
        } catch {
            giveUp("cannot answer: \(error)")
        }
    }
    try nameServer(in: directory).register(orders, name: name)
    try orders.schedule()
    say("ready")
    runUntilInputEnds()
    side.end()
    orders.invalidate()
}
