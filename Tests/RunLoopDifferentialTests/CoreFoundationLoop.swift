// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A scenario on the CFRunLoop of the toolchain. CoreFoundation is a part of Foundation's library on Linux: importing
// Foundation links it.

import CoreFoundation
import Foundation
import PortSystem
import TestSupport

/// A CFRunLoop that plays scenarios.
final class CoreFoundationLoop: LoopUnderTest {
    /// The argument of a source's C routines. To CoreFoundation two sources with equal routines and equal info are one,
    /// so each source has its own.
    final class SourceInfo {
        let name: String
        let stage: any Stage
        let doorbell: EventDescriptor?

        init(_ name: String, _ stage: any Stage, _ doorbell: consuming EventDescriptor?) {
            self.name = name
            self.stage = stage
            self.doorbell = doorbell
        }

        var port: CInt {
            switch doorbell {
            case .none: -1
            case .some(let event): event.raw
            }
        }

        func signal() {
            switch doorbell {
            case .none: break
            case .some(let event): event.signal()
            }
        }

        static func at(_ info: UnsafeMutableRawPointer?) -> SourceInfo? {
            info.map { Unmanaged<SourceInfo>.fromOpaque($0).takeUnretainedValue() }
        }
    }

    /// The first loop that is made brings the main loop with it, which stays.
    static func warmUp() {
        _ = CFRunLoopGetMain()
    }

    private let loop: CFRunLoop = CFRunLoopGetCurrent()
    private let stage: any Stage
    private var infos: [String: SourceInfo] = [:]
    private var sources: [String: CFRunLoopSource] = [:]
    private var timers: [String: CFRunLoopTimer] = [:]
    private var observers: [String: CFRunLoopObserver] = [:]
    private var harness: [CFRunLoopObserver] = []

    init(_ scenario: Scenario, on stage: any Stage) throws {
        self.stage = stage
        for item in scenario.items { try make(item) }
        for mode in scenario.traced {
            for isLast in [false, true] { observe(mode, isLast: isLast) }
        }
    }

    private func make(_ item: Item) throws {
        let (name, stage) = (item.name, stage)
        switch item.kind {
        case .source(let reportsModes):
            let info = SourceInfo(name, stage, nil)
            infos[name] = info
            sources[name] = Self.makeSource(info, order: item.order, reportsModes: reportsModes)
        case .port:
            let info = SourceInfo(name, stage, try EventDescriptor(.eventfd))
            infos[name] = info
            sources[name] = Self.makePort(info, order: item.order)
        case .timer(let date, let repeats):
            timers[name] = CFRunLoopTimerCreateWithHandler(
                nil, Self.absoluteTime(date), repeats ? 3600 : 0, 0, item.order
            ) { _ in stage.callout(name) }
        case .observer(let activities, let repeats):
            let mask = activities.reduce(0) { $0 | $1.rawValue }
            observers[name] = CFRunLoopObserverCreateWithHandler(nil, CFOptionFlags(mask), repeats, item.order) {
                _, _ in
                stage.callout(name)
            }
        case .block: break
        }
    }

    private static func makeSource(_ info: SourceInfo, order: Int, reportsModes: Bool) -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext()
        context.info = Unmanaged.passUnretained(info).toOpaque()
        context.perform = { info in
            guard let info = SourceInfo.at(info) else { return }
            info.stage.callout(info.name)
        }
        if reportsModes {
            context.schedule = { info, _, mode in
                guard let info = SourceInfo.at(info), let mode else { return }
                info.stage.moved(info.name, entered: true, Mode(mode))
            }
            context.cancel = { info, _, mode in
                guard let info = SourceInfo.at(info), let mode else { return }
                info.stage.moved(info.name, entered: false, Mode(mode))
            }
        }
        return CFRunLoopSourceCreate(nil, order, &context)
    }

    private static func makePort(_ info: SourceInfo, order: Int) -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        context.info = Unmanaged.passUnretained(info).toOpaque()
        context.getPort = { SourceInfo.at($0)?.port ?? -1 }
        // The loop has read the eventfd already.
        context.perform = { info in
            guard let info = SourceInfo.at(info) else { return }
            info.stage.callout(info.name)
        }
        return context.makeSource(order: order)
    }

    private func observe(_ mode: Mode, isLast: Bool) {
        let (stage, order) = (stage, isLast ? Int.max : Int.min)
        let all = CFRunLoopActivity.allActivities.rawValue
        guard
            let observer = CFRunLoopObserverCreateWithHandler(
                nil, all, true, order,
                { _, activity in
                    guard let activity = Activity(rawValue: UInt(activity.rawValue)) else { return }
                    stage.activity(activity, in: mode, isLast: isLast)
                })
        else { return }
        harness.append(observer)
        CFRunLoopAddObserver(loop, observer, mode.name)
    }

    private static func absoluteTime(_ date: FireDate) -> CFAbsoluteTime {
        let now = CFAbsoluteTimeGetCurrent()
        return switch date {
        case .due: now - 1  // CoreFoundation makes a past date the present one.
        case .past(let hours): now - CFAbsoluteTime(3600 * hours)
        case .far: now + 3600
        case .soon(let milliseconds): now + CFAbsoluteTime(milliseconds) / 1000
        }
    }

    func add(_ item: String, to mode: Mode) {
        if let source = sources[item] { CFRunLoopAddSource(loop, source, mode.name) }
        if let timer = timers[item] { CFRunLoopAddTimer(loop, timer, mode.name) }
        if let observer = observers[item] { CFRunLoopAddObserver(loop, observer, mode.name) }
    }

    func remove(_ item: String, from mode: Mode) {
        if let source = sources[item] { CFRunLoopRemoveSource(loop, source, mode.name) }
        if let timer = timers[item] { CFRunLoopRemoveTimer(loop, timer, mode.name) }
        if let observer = observers[item] { CFRunLoopRemoveObserver(loop, observer, mode.name) }
    }

    func contains(_ item: String, in mode: Mode) -> Bool {
        if let source = sources[item] { return CFRunLoopContainsSource(loop, source, mode.name) }
        if let timer = timers[item] { return CFRunLoopContainsTimer(loop, timer, mode.name) }
        return observers[item].map { CFRunLoopContainsObserver(loop, $0, mode.name) } ?? false
    }

    func invalidate(_ item: String) {
        if let source = sources[item] { CFRunLoopSourceInvalidate(source) }
        if let timer = timers[item] { CFRunLoopTimerInvalidate(timer) }
        if let observer = observers[item] { CFRunLoopObserverInvalidate(observer) }
    }

    func isValid(_ item: String) -> Bool {
        if let source = sources[item] { return CFRunLoopSourceIsValid(source) }
        if let timer = timers[item] { return CFRunLoopTimerIsValid(timer) }
        return observers[item].map { CFRunLoopObserverIsValid($0) } ?? false
    }

    func signal(_ item: String) {
        sources[item].map { CFRunLoopSourceSignal($0) }
    }

    func write(_ item: String) {
        infos[item]?.signal()
    }

    func setDate(_ item: String, _ date: FireDate) {
        timers[item].map { CFRunLoopTimerSetNextFireDate($0, Self.absoluteTime(date)) }
    }

    func post(_ item: String, in modes: [Mode]) {
        let (stage, names) = (stage, modes.map(\.name))
        let array = CFArray.of(names)
        CFRunLoopPerformBlock(loop, array, { stage.callout(item) })
    }

    func addCommonMode(_ mode: Mode) {
        CFRunLoopAddCommonMode(loop, mode.name)
    }

    func run(_ mode: Mode, _ limit: Limit, returns: Bool) -> Outcome {
        let seconds: CFTimeInterval =
            switch limit {
            case .zero: 0
            case .milliseconds(let number), .stuck(let number): CFTimeInterval(number) / 1000
            case .long: CFTimeInterval(Limit.longest.components.seconds)
            }
        return Outcome(rawValue: Int(CFRunLoopRunInMode(mode.name, seconds, returns).rawValue)) ?? .finished
    }

    func stop() {
        CFRunLoopStop(loop)
    }

    func wakeUp() {
        CFRunLoopWakeUp(loop)
    }

    var currentMode: Mode? {
        CFRunLoopCopyCurrentMode(loop).map { Mode($0) }
    }

    var modes: [Mode] {
        let names: CFArray = CFRunLoopCopyAllModes(loop)
        return (0..<CFArrayGetCount(names)).compactMap { index in
            CFArrayGetValueAtIndex(names, index).map { Mode(Unmanaged<CFString>.fromOpaque($0).takeUnretainedValue()) }
        }
        .filter { $0 != .common }
    }

    func tearDown() {
        for observer in harness + observers.values { CFRunLoopObserverInvalidate(observer) }
        for source in sources.values { CFRunLoopSourceInvalidate(source) }
        for timer in timers.values { CFRunLoopTimerInvalidate(timer) }
    }
}
