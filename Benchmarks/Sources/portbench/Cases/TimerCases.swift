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
                [
                    try Contest(
                        id: "timers.scale", variant: "set date, \(number) timers", unit: .nanoseconds,
                        ours: { .timers(number) }, baseline: { .timers(10) },
                        others: number > 1_000 ? [] : [{ .coreFoundationTimers(number) }]
                    ).measure(settings)
                ]
            }
        }
    }
}

extension Contestant {
    /// Changes the dates of timers that wait on this thread's loop.
    fileprivate static func timers(_ number: Int) -> Contestant {
        let timers = (0..<number).map { index in
            let timer = RunLoopTimer(after: .seconds(3600 + index % 997)) { _ in }
            ThreadRunLoop.current.add(timer)
            return timer
        }
        var step = 0
        return Contestant(
            name: number == 10 ? "10 timers" : "timers", timesLaps: false,
            run: { count, laps in
                timed(count, laps) {
                    step += 1
                    timers[step &* 7919 % number].setNextFireDate(.after(.seconds(3600 + step % 997)))
                }
            },
            end: { for timer in timers { timer.invalidate() } })
    }

    /// The same with CoreFoundation's.
    fileprivate static func coreFoundationTimers(_ number: Int) -> Contestant {
        let timers = (0..<number).map { index in
            let timer = CFRunLoopTimerCreateWithHandler(
                nil, CFAbsoluteTimeGetCurrent() + Double(3600 + index % 997), 0, 0, 0
            ) { _ in }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
            return timer
        }
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
}
