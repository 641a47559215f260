// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The experiment of decision 0041: indirect counts. Each process that passes a right on counts its receiver, by the
// connection between them, and keeps its own right as long as that. A process whose giver has ended connects to the
// port. Explores all orders of three processes, and prints the first ones in which the port is notified while a right is
// left.
//
//   swiftc -O Docs/Decisions/0041-indirect-counts.swift -o /tmp/indirect && /tmp/indirect

struct World: Hashable {
    // The port's process: whether it counts the first client, by the connection over which it sent the right, and the
    // second, which has connected.
    var countsFirst = true
    var countsSecond = false
    var isNotified = false

    // The first client. It has the right from the port's process.
    var isFirstRunning = true
    var hasFirstRight = true
    var firstCountsSecond = false

    // The second client.
    var isRightOnItsWay = false
    var hasSecondRight = false
    var hasSecondConnected = false
    /// Whether it has found that the connection to the first has ended.
    var hasFoundEnd = false

    /// A right that is on its way from a process that has ended is in the receiver's socket.
    var holder: String? {
        if isFirstRunning && hasFirstRight { return "the first client has the right" }
        if isRightOnItsWay { return "the right is on its way to the second client" }
        return hasSecondRight ? "the second client has the right" : nil
    }
}

func steps(_ world: World) -> [(String, World)] {
    var found: [(String, World)] = []
    func add(_ name: String, _ change: (inout World) -> Void) {
        var next = world
        change(&next)
        found.append((name, next))
    }
    if world.isNotified { return [] }
    if world.isFirstRunning {
        if world.hasFirstRight, !world.isRightOnItsWay, !world.hasSecondRight {
            add("the first client passes the right on, and counts its receiver") {
                ($0.isRightOnItsWay, $0.firstCountsSecond) = (true, true)
            }
        }
        if world.hasFirstRight { add("the first client drops its right") { $0.hasFirstRight = false } }
        // It confirms that it has none only when no receiver is left.
        if !world.hasFirstRight, !world.firstCountsSecond, world.countsFirst {
            add("the first client reports that it has let go") { $0.countsFirst = false }
        }
        add("the first client dies") { ($0.isFirstRunning, $0.hasFirstRight) = (false, false) }
    } else {
        if world.countsFirst {
            add("the port finds the first client's connection closed") { $0.countsFirst = false }
        }
        if !world.hasFoundEnd {
            add("the second client finds the first client's connection closed") { $0.hasFoundEnd = true }
        }
        if world.hasFoundEnd, world.hasSecondRight, !world.hasSecondConnected {
            add("the second client connects to the port") { $0.hasSecondConnected = true }
        }
    }
    if world.isRightOnItsWay {
        add("the second client receives the right") { ($0.isRightOnItsWay, $0.hasSecondRight) = (false, true) }
    }
    if world.hasSecondConnected, !world.countsSecond {
        add("the port accepts the second client") { $0.countsSecond = true }
    }
    if world.hasSecondRight, !world.hasSecondConnected {
        add("the second client drops its right, and reports it") {
            ($0.hasSecondRight, $0.firstCountsSecond) = (false, false)
        }
    }
    // The clients that wait are accepted first.
    if !world.countsFirst, !world.countsSecond, !world.hasSecondConnected {
        add("the port is notified") { $0.isNotified = true }
    }
    return found
}

var seen: [World: (World?, String)] = [World(): (nil, "")]
var found: Set<String> = []
var queue = [World()]
var next = 0
while next < queue.count {
    let world = queue[next]
    next += 1
    if world.isNotified, let holder = world.holder, found.insert(holder).inserted {
        var (trace, current) = (["early: \(holder)"], world)
        while case (let origin?, let step)? = seen[current] {
            trace.insert(step, at: 0)
            current = origin
        }
        print(trace.joined(separator: "\n") + "\n")
    }
    for (step, state) in steps(world) where seen[state] == nil {
        seen[state] = (world, step)
        queue.append(state)
    }
}
print(seen.count, "states")
