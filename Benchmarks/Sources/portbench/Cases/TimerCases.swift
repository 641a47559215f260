// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CoreFoundation
import Foundation
import NamedPortServer

extension Case {
    /// Many timers on one loop.
    static var timers: Case {
        Case("timers.scale") { settings in
            try [1_000, 100_000].flatMap { number in
                // CoreFoundation's cost grows with their number: with more it would take minutes to make them.
                let others = number > 1_000 ? [] : [number]
                return [
                    try Contest(
                        id: "timers.scale", variant: "set date, \(number) timers", unit: .nanoseconds,
                        ours: { .timerDates(number) }, baseline: { .timerDates(10) },
                        others: others.map { number in { .coreFoundationTimerDates(number) } }
                    ).measure(settings),
                    try Contest(
                        id: "timers.scale", variant: "add and fire, \(number) timers", unit: .nanoseconds,
                        ours: { .timerFirings(number) }, baseline: { .timerFirings(10) },
                        others: others.map { number in { .coreFoundationTimerFirings(number) } }
                    ).measure(settings),
                ]
            }
        }
    }
}

/// Timers that wait on this thread's loop, for an hour or more.
private func waitingTimers(_ number: Int) -> [RunLoopTimer] {
    (0..<number).map { index in
        let timer = RunLoopTimer(after: .seconds(3600 + index % 997)) { _ in }
        ThreadRunLoop.current.add(timer)
        return timer
    }
}

/// The same of CoreFoundation's.
private func waitingCoreFoundationTimers(_ number: Int) -> [CFRunLoopTimer?] {
    (0..<number).map { index in
        let timer = CFRunLoopTimerCreateWithHandler(
            nil, CFAbsoluteTimeGetCurrent() + Double(3600 + index % 997), 0, 0, 0
        ) { _ in }
        CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
        return timer
    }
}

extension Contestant {
    /// Changes the dates of waiting timers.
    fileprivate static func timerDates(_ number: Int) -> Contestant {
        let timers = waitingTimers(number)
        var step = 0
        return Contestant(
            name: "\(number) timers", timesLaps: false,
            run: { count, laps in
                timed(count, laps) {
                    step += 1
                    timers[step &* 7919 % number].setNextFireDate(.after(.seconds(3600 + step % 997)))
                }
            },
            end: { for timer in timers { timer.invalidate() } })
    }

    /// Makes timers that fire at once, beside waiting ones.
    fileprivate static func timerFirings(_ number: Int) -> Contestant {
        let (timers, loop) = (waitingTimers(number), ThreadRunLoop.current)
        return Contestant(
            name: "\(number) timers", timesLaps: false,
            run: { count, laps in
                timed(count, laps) {
                    loop.add(RunLoopTimer(after: .zero) { _ in })
                    loop.run(for: .zero)
                }
            },
            end: { for timer in timers { timer.invalidate() } })
    }

    /// Changes the dates of waiting timers.
    fileprivate static func coreFoundationTimerDates(_ number: Int) -> Contestant {
        let timers = waitingCoreFoundationTimers(number)
        var step = 0
        return Contestant(
            name: "CFRunLoop, \(number) timers", timesLaps: false,
            run: { count, laps in
                timed(count, laps) {
                    step += 1
                    CFRunLoopTimerSetNextFireDate(
                        timers[step &* 7919 % number], CFAbsoluteTimeGetCurrent() + Double(3600 + step % 997))
                }
            },
            end: { for timer in timers { CFRunLoopTimerInvalidate(timer) } })
    }

    /// Makes timers that fire at once, beside waiting ones.
    fileprivate static func coreFoundationTimerFirings(_ number: Int) -> Contestant {
        let timers = waitingCoreFoundationTimers(number)
        return Contestant(
            name: "CFRunLoop, \(number) timers", timesLaps: false,
            run: { count, laps in
                timed(count, laps) {
                    let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0) { _ in }
                    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
                    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
                }
            },
            end: { for timer in timers { CFRunLoopTimerInvalidate(timer) } })
    }
}
