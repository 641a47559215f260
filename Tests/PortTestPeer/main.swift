// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The other process of the tests of named ports. Each line that it writes is a state that a test waits for.
//
//   serve DIRECTORY NAME [QUEUE-LIMIT]    answers messages (Act.swift); "ready"; until its input ends
//   far DIRECTORY NAME PORTS              is the far side of a test of the contract (FarSide.swift); "ready"
//   mover DIRECTORY NAME                  gives rights to a port, and moves that (Moving.swift); "ready"
//   successor DIRECTORY NAME              serves the ports that come in messages; "ready", "arrived"; a deaf-successor
//                                         reads no message
//   hand-over DIRECTORY NAME              serves a name, and hands it over; "ready", "handed" (Moving.swift)
//   take-over DIRECTORY NAME              serves the port that is handed over to it; "ready", "arrived as NAME"
//   shuttle DIRECTORY NAME                serves a name, hands it over, and takes it over again (Moving.swift)
//   borrow DIRECTORY NAME                 has borrowed memory, and replies memory of its own (Memory.swift); "ready"
//   lend DIRECTORY NAME                   sends memory until the port ends (Memory.swift)
//   hold DIRECTORY                        obeys its input's lines "take NAME", "free NAME", "find NAME"
//   ask DIRECTORY NAME ID TEXT            sends a request; "reply TEXT"
//   send DIRECTORY NAME COUNT             sends COUNT numbered notes, one way, and exits
//   connect-many DIRECTORY NAME COUNT     COUNT connections at once, one request over each; "replies COUNT"
//   connect-and-stay DIRECTORY NAME COUNT the same, and keeps the connections until its input ends (Faults.swift)
//   log DIRECTORY NAME FILE               replies what it got, after it wrote that to the file; "ready"
//   stream DIRECTORY NAME COUNT           sends the numbers below COUNT, alternately as request and as note
//   pace DIRECTORY NAME                   a new connection and a request for each line of its input; "reply TEXT"
//   check-in DIRECTORY NAME right|name    sends its own port to the port NAME, and serves that until its input ends
//   activated DIRECTORY NAME              checks in for a declared name; "checked in", then serves until its input ends
//   activated-local DIRECTORY NAME        the same with a local port, which reverses; "checked in as NAME"
//   traced-fault DIRECTORY                lets itself be traced, and traps in a handler
//   traced DIRECTORY                      lets itself be traced; "traced", then a timer fires until its input ends
//   activated-again DIRECTORY NAME        checks in twice, then lets a child check in, then becomes "activated"
//   owner DIRECTORY NAME                  opens the process that owns a port: "owner NUMBER", what of it is known, "runs"
//   connect-raw PATH                      connects to a socket's path as a stranger would; "received" what comes back
//   variable NAME                         says "variable VALUE" of the environment, or "no variable"
//   launch                                launches a worker process, asks it, and shuts it down (Commands.swift)
//   wait DIRECTORY NAME                   waits for a name; "waiting", "found"
//   notice DIRECTORY NAME                 waits on its loop for a port's death notice; "ready", "died"
//   worker KIND [ARGUMENT]                a worker process of a test, as WorkerProcess.swift says
//   domain PATH                           has its names and addresses in a shared directory; "address", "names …" thrice
//   lock PATH                             locks a file for reading; "locked", until its input ends
//   exec PROGRAM …                        becomes another program
//   as USER[:GROUP] COMMAND …             the command as another user, in one supplementary group; for root only
//   policy POLICY COMMAND …               the port of the command admits `members`, `users:1,2` or `groups:1,2`
//   connections COUNT COMMAND …           the port of the command lets a process have that many
//   unlimited COMMAND …                   the command with as many descriptors as the system allows
//
// DIRECTORY is a path, or `shared:` and the path of a directory that may be shared.
//
// A port error is the line "error CODE", and ", owner PROCESS" if it has one. The status is 0 whenever the command
// was carried out, whatever its result, and 2 when it was not understood.

import ContractServices
import NamedPortServer
import PortSystem

var arguments = peerArguments()
var rules = Rules()
while arguments.count > 2, ["as", "policy", "connections"].contains(arguments[0]) {
    switch arguments[0] {
    case "as": become(arguments[1])
    case "policy": rules.setPolicy(arguments[1])
    default: rules.limits.connections = Int(arguments[1]) ?? 0
    }
    arguments.removeFirst(2)
}
if arguments.first == "exec", arguments.count > 1 { become(program: Array(arguments.dropFirst())) }
if arguments.first == "unlimited" {
    raiseDescriptorLimit()
    arguments.removeFirst()
}
do throws(PortError) {
    let command = arguments.first ?? ""
    let rest = Array(arguments.dropFirst())
    switch (command, rest.count) {
    case ("serve", 2): try serve(rest[0], rest[1], queueLimit: MachPort.defaultQueueLimit, rules)
    case ("serve", 3): try serve(rest[0], rest[1], queueLimit: Int(rest[2]) ?? 0, rules)
    case ("domain", 1): try useDomain(rest[0])
    case ("lock", 1): lockForReading(rest[0])
    case ("far", 3): try beFarSide(rest[0], rest[1], rest[2])
    case ("mover", 2): try moveAway(rest[0], rest[1])
    case ("successor", 2): try succeed(rest[0], rest[1], isDeaf: false)
    case ("deaf-successor", 2): try succeed(rest[0], rest[1], isDeaf: true)
    case ("hand-over", 2): try handOver(rest[0], rest[1])
    case ("take-over", 2): try takeOver(rest[0], rest[1])
    case ("shuttle", 2): try shuttle(rest[0], rest[1])
    case ("borrow", 2): try borrow(rest[0], rest[1])
    case ("lend", 2): try lend(rest[0], rest[1])
    case ("hold", 1): try hold(rest[0])
    case ("ask", 4): try ask(rest[0], rest[1], id: Int32(rest[2]) ?? 0, text: rest[3])
    case ("send", 3): try send(rest[0], rest[1], count: Int(rest[2]) ?? 0)
    case ("connect-many", 3): try connectMany(rest[0], rest[1], count: Int(rest[2]) ?? 0)
    case ("connect-and-stay", 3): try connectManyAndStay(rest[0], rest[1], count: Int(rest[2]) ?? 0)
    case ("log", 3): try logHandled(rest[0], rest[1], rest[2], rules)
    case ("stream", 3): try stream(rest[0], rest[1], count: Int(rest[2]) ?? 0)
    case ("pace", 2): try pace(rest[0], rest[1])
    case ("check-in", 3): try checkIn(rest[0], rest[1], by: rest[2], rules)
    case ("activated", 2): try activated(rest[0], rest[1])
    case ("activated-local", 2): try activatedLocal(rest[0], rest[1])
    case ("traced", 1): try traced(rest[0])
    case ("traced-fault", 1): try tracedFault(rest[0])
    case ("activated-again", 2): try activatedAgain(rest[0], rest[1])
    case ("owner", 2): try openOwner(rest[0], rest[1])
    case ("connect-raw", 1): connectRaw(rest[0])
    case ("variable", 1): say(sysEnvironment(rest[0]).map { "variable \($0)" } ?? "no variable")
    case ("launch", 0): try launch()
    case ("notice", 2): try notice(rest[0], rest[1])
    case ("wait", 2): try wait(rest[0], rest[1])
    case ("worker", 1): try work(rest[0], "")
    case ("worker", 2): try work(rest[0], rest[1])
    default: giveUp("not understood: \(arguments)")
    }
} catch {
    say(sentence(error))
}
