// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport

extension Limit {
    /// The limit of a long run. It comes before the watchdog's, so that a run that hangs is in the trace.
    static var longest: Duration { longTimeout / 4 }
}

/// How a run ended, with the values of `CFRunLoopRunResult`.
enum Outcome: Int, CaseIterable, Sendable {
    case finished = 1
    case stopped, timedOut, handledSource
}

/// What calls into a scenario: the loop under test, when it calls a handler.
protocol Stage: AnyObject {
    /// An observer of the harness, before and after all observers of the scenario.
    func activity(_ activity: Activity, in mode: Mode, isLast: Bool)
    /// A handler of an item is called, in the mode's name for an observer.
    func callout(_ item: String)
    /// A schedule or cancel routine is called.
    func moved(_ item: String, entered: Bool, _ mode: Mode)
}

/// A run loop of the present thread that can play scenarios. Written once for each of the two loops.
protocol LoopUnderTest {
    /// Makes the loop's items, and observers of every activity of the traced modes: one before all others, one after.
    init(_ scenario: Scenario, on stage: any Stage) throws

    func add(_ item: String, to mode: Mode)
    func remove(_ item: String, from mode: Mode)
    func contains(_ item: String, in mode: Mode) -> Bool
    func invalidate(_ item: String)
    func isValid(_ item: String) -> Bool
    func signal(_ item: String)
    func write(_ item: String)
    func setDate(_ item: String, _ date: FireDate)
    func post(_ item: String, in modes: [Mode])
    func addCommonMode(_ mode: Mode)
    func run(_ mode: Mode, _ limit: Limit, returns: Bool) -> Outcome
    func stop()
    func wakeUp()
    var currentMode: Mode? { get }
    /// Every mode that the loop knows, without the pseudo mode.
    var modes: [Mode] { get }
    /// Breaks the cycles between items and their handlers.
    func tearDown()
}
