// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A scenario on the loop of this package.

import PortSystem
import RunLoopCore
import TestSupport

/// A ``ThreadRunLoop`` that plays scenarios.
final class PackageLoop: LoopUnderTest {
    private final class Doorbell: Sendable {
        let event: EventDescriptor

        init() throws { event = try EventDescriptor(.eventfd) }
    }

    private let loop = ThreadRunLoop.current
    private let stage: LoopBound<any Stage>
    private var sources: [String: RunLoopSource] = [:]
    private var timers: [String: RunLoopTimer] = [:]
    private var observers: [String: RunLoopObserver] = [:]
    private var doorbells: [String: Doorbell] = [:]
    private var harness: [RunLoopObserver] = []

    init(_ scenario: Scenario, on stage: any Stage) throws {
        self.stage = LoopBound(stage)
        for item in scenario.items { try make(item) }
        for mode in scenario.traced {
            for isLast in [false, true] { observe(mode, isLast: isLast) }
        }
    }

    private func make(_ item: Item) throws {
        let (name, stage) = (item.name, stage)
        switch item.kind {
        case .source(let reportsModes):
            let schedule: RunLoopSource.ModeRoutine = { stage.value.moved(name, entered: true, Mode($1)) }
            let cancel: RunLoopSource.ModeRoutine = { stage.value.moved(name, entered: false, Mode($1)) }
            sources[name] = RunLoopSource(
                order: item.order, schedule: reportsModes ? schedule : nil, cancel: reportsModes ? cancel : nil
            ) { stage.value.callout(name) }
        case .port:
            let doorbell = try Doorbell()
            doorbells[name] = doorbell
            sources[name] = RunLoopSource(descriptor: doorbell.event.raw, order: item.order) {
                doorbell.event.clear()
                stage.value.callout(name)
            }
        case .timer(let date, let repeats):
            timers[name] = RunLoopTimer(
                fireDate: Self.instant(date), interval: repeats ? .seconds(3600) : nil, order: item.order
            ) { _ in stage.value.callout(name) }
        case .observer(let activities, let repeats):
            let mask = RunLoopActivity(rawValue: activities.reduce(0) { $0 | $1.rawValue })
            observers[name] = RunLoopObserver(activities: mask, repeats: repeats, order: item.order) { _, _ in
                stage.value.callout(name)
            }
        case .block: break
        }
    }

    private func observe(_ mode: Mode, isLast: Bool) {
        let stage = stage
        let observer = RunLoopObserver(activities: .all, order: isLast ? .max : .min) { _, activity in
            guard let activity = Activity(rawValue: activity.rawValue) else { return }
            stage.value.activity(activity, in: mode, isLast: isLast)
        }
        harness.append(observer)
        loop.add(observer, to: mode.runLoopMode)
    }

    private static func instant(_ date: FireDate) -> MonotonicInstant {
        switch date {
        case .due: .now
        case .past(let hours): .after(.seconds(-3600 * hours))
        case .far: .after(.seconds(3600))
        case .soon(let milliseconds): .after(.milliseconds(milliseconds))
        }
    }

    func add(_ item: String, to mode: Mode) {
        if let source = sources[item] { loop.add(source, to: mode.runLoopMode) }
        if let timer = timers[item] { loop.add(timer, to: mode.runLoopMode) }
        if let observer = observers[item] { loop.add(observer, to: mode.runLoopMode) }
    }

    func remove(_ item: String, from mode: Mode) {
        if let source = sources[item] { loop.remove(source, from: mode.runLoopMode) }
        if let timer = timers[item] { loop.remove(timer, from: mode.runLoopMode) }
        if let observer = observers[item] { loop.remove(observer, from: mode.runLoopMode) }
    }

    func contains(_ item: String, in mode: Mode) -> Bool {
        if let source = sources[item] { return loop.contains(source, in: mode.runLoopMode) }
        if let timer = timers[item] { return loop.contains(timer, in: mode.runLoopMode) }
        return observers[item].map { loop.contains($0, in: mode.runLoopMode) } ?? false
    }

    func invalidate(_ item: String) {
        sources[item]?.invalidate()
        timers[item]?.invalidate()
        observers[item]?.invalidate()
    }

    func isValid(_ item: String) -> Bool {
        sources[item]?.isValid ?? timers[item]?.isValid ?? observers[item]?.isValid ?? false
    }

    func signal(_ item: String) {
        sources[item]?.signal()
    }

    func write(_ item: String) {
        doorbells[item]?.event.signal()
    }

    func setDate(_ item: String, _ date: FireDate) {
        timers[item]?.setNextFireDate(Self.instant(date))
    }

    func post(_ item: String, in modes: [Mode]) {
        let stage = stage
        loop.perform(in: modes.map(\.runLoopMode)) { stage.value.callout(item) }
    }

    func addCommonMode(_ mode: Mode) {
        loop.addCommonMode(mode.runLoopMode)
    }

    func run(_ mode: Mode, _ limit: Limit, returns: Bool) -> Outcome {
        let limit: Duration =
            switch limit {
            case .zero: .zero
            case .milliseconds(let number): .milliseconds(number)
            case .long, .stuck: Limit.longest
            }
        switch loop.run(mode: mode.runLoopMode, for: limit, returnAfterSourceHandled: returns) {
        case .finished: return .finished
        case .stopped: return .stopped
        case .timedOut: return .timedOut
        case .handledSource: return .handledSource
        }
    }

    func stop() {
        loop.stop()
    }

    func wakeUp() {
        loop.wakeUp()
    }

    var currentMode: Mode? { loop.currentMode.map { Mode($0) } }

    var modes: [Mode] { loop.allModes.map { Mode($0) } }

    func tearDown() {
        for observer in harness + observers.values { observer.invalidate() }
        for source in sources.values { source.invalidate() }
        for timer in timers.values { timer.invalidate() }
    }
}

extension Mode {
    fileprivate var runLoopMode: RunLoopMode {
        switch self {
        case .default: .default
        case .common: .common
        case .alpha, .beta, .ghost: RunLoopMode(rawValue)
        }
    }

    fileprivate init(_ mode: RunLoopMode) {
        switch mode {
        case .default: self = .default
        case .common: self = .common
        default: self = Mode(rawValue: mode.rawValue) ?? .ghost
        }
    }
}
