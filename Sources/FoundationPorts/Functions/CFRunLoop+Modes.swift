// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The functions of CFRunLoop.h that take or return a mode, as Apple's Swift interface spells them: with `CFRunLoopMode`.
// For those that are `@_disfavoredOverload`, see `CFMessagePort+Functions.swift`.

public import CoreFoundation
public import Foundation

/// Whether no argument is nil; if one is, a line on standard error, where CoreFoundation would end the program.
private func areGiven(_ arguments: AnyObject?..., caller: StaticString = #function) -> Bool {
    if arguments.allSatisfy({ $0 != nil }) { return true }
    logRefusal("\(caller) lacks an argument", by: "CFRunLoop")
    return false
}

/// Whether a source is on a loop in a mode.
@discardableResult
public func CFRunLoopContainsSource(_ rl: CFRunLoop!, _ source: CFRunLoopSource!, _ mode: CFRunLoopMode!) -> Bool {
    guard areGiven(rl, source, mode?.rawValue) else { return false }
    let standsForMain = PortSource.of(source) != nil && MainQueueService.shared.standsForMainLoop(rl)
    let loop = standsForMain ? CFRunLoopGetMain() : rl
    return CoreFoundation.CFRunLoopContainsSource(loop, source, mode.asCoreFoundation)
}

/// Adds a source to a loop in a mode; the loop retains it. Any thread may call it.
///
/// A port on the main loop, in the default mode or the common ones, is served from the main queue once the main thread waits
/// in `dispatchMain`, as under an `async` main: then no thread runs that loop. There, the current loop of code on the main
/// queue, as of a main actor, is the main loop for ports.
public func CFRunLoopAddSource(_ rl: CFRunLoop!, _ source: CFRunLoopSource!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, source, mode?.rawValue) else { return }
    let main = CFRunLoopGetMain()
    let standsForMain = PortSource.of(source) != nil && MainQueueService.shared.standsForMainLoop(rl)
    for loop in standsForMain ? [rl, main] : [rl] {
        CoreFoundation.CFRunLoopAddSource(loop, source, mode.asCoreFoundation)
        // CoreFoundation adds a source, for good, that another thread invalidates meanwhile.
        if !CFRunLoopSourceIsValid(source) {
            CoreFoundation.CFRunLoopRemoveSource(loop, source, mode.asCoreFoundation)
        }
    }
    if standsForMain || rl === main, let port = PortSource.of(source) {
        let standIn = standsForMain ? rl : nil
        MainQueueService.shared.add(port, source, mode: mode.rawValue as String, standIn: standIn)
    }
}

/// Removes a source from a loop in a mode. Any thread may call it.
public func CFRunLoopRemoveSource(_ rl: CFRunLoop!, _ source: CFRunLoopSource!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, source, mode?.rawValue) else { return }
    let (port, service, main) = (PortSource.of(source), MainQueueService.shared, CFRunLoopGetMain())
    CoreFoundation.CFRunLoopRemoveSource(rl, source, mode.asCoreFoundation)
    guard let port, rl === main || service.standsForMainLoop(rl) || service.isStandIn(rl, of: port) else { return }
    CoreFoundation.CFRunLoopRemoveSource(main, source, mode.asCoreFoundation)
    service.remove(port, mode: mode.rawValue as String)
}

/// Whether a timer is on a loop in a mode.
@discardableResult
public func CFRunLoopContainsTimer(_ rl: CFRunLoop!, _ timer: CFRunLoopTimer!, _ mode: CFRunLoopMode!) -> Bool {
    guard areGiven(rl, timer, mode?.rawValue) else { return false }
    return CoreFoundation.CFRunLoopContainsTimer(rl, timer, mode.asCoreFoundation)
}

/// Adds a timer to a loop in a mode; the loop retains it. A timer is on one loop.
public func CFRunLoopAddTimer(_ rl: CFRunLoop!, _ timer: CFRunLoopTimer!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, timer, mode?.rawValue) else { return }
    CoreFoundation.CFRunLoopAddTimer(rl, timer, mode.asCoreFoundation)
}

/// Removes a timer from a loop in a mode.
public func CFRunLoopRemoveTimer(_ rl: CFRunLoop!, _ timer: CFRunLoopTimer!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, timer, mode?.rawValue) else { return }
    CoreFoundation.CFRunLoopRemoveTimer(rl, timer, mode.asCoreFoundation)
}

/// Whether an observer is on a loop in a mode.
@discardableResult
public func CFRunLoopContainsObserver(
    _ rl: CFRunLoop!, _ observer: CFRunLoopObserver!, _ mode: CFRunLoopMode!
) -> Bool {
    guard areGiven(rl, observer, mode?.rawValue) else { return false }
    return CoreFoundation.CFRunLoopContainsObserver(rl, observer, mode.asCoreFoundation)
}

/// Adds an observer to a loop in a mode; the loop retains it.
public func CFRunLoopAddObserver(_ rl: CFRunLoop!, _ observer: CFRunLoopObserver!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, observer, mode?.rawValue) else { return }
    CoreFoundation.CFRunLoopAddObserver(rl, observer, mode.asCoreFoundation)
}

/// Removes an observer from a loop in a mode.
public func CFRunLoopRemoveObserver(_ rl: CFRunLoop!, _ observer: CFRunLoopObserver!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, observer, mode?.rawValue) else { return }
    CoreFoundation.CFRunLoopRemoveObserver(rl, observer, mode.asCoreFoundation)
}

/// Makes a mode one of the common modes of a loop, for good.
public func CFRunLoopAddCommonMode(_ rl: CFRunLoop!, _ mode: CFRunLoopMode!) {
    guard areGiven(rl, mode?.rawValue) else { return }
    CoreFoundation.CFRunLoopAddCommonMode(rl, mode.asCoreFoundation)
}

/// The mode in which a loop runs; nil while it does not run.
@discardableResult @_disfavoredOverload
public func CFRunLoopCopyCurrentMode(_ rl: CFRunLoop!) -> CFRunLoopMode! {
    guard areGiven(rl) else { return nil }
    guard let mode = CoreFoundation.CFRunLoopCopyCurrentMode(rl) else { return nil }
    return CFRunLoopMode(rawValue: unsafeBitCast(mode, to: NSString.self))
}

/// The mode in which a loop runs; nil while it does not run.
@discardableResult
public func CFRunLoopCopyCurrentMode(_ rl: CFRunLoop) -> CFRunLoopMode! {
    let loop: CFRunLoop! = rl
    return CFRunLoopCopyCurrentMode(loop)
}

/// The names of all modes that a loop has, as strings.
@discardableResult @_disfavoredOverload
public func CFRunLoopCopyAllModes(_ rl: CFRunLoop!) -> NSArray! {
    guard areGiven(rl) else { return nil }
    guard let modes = CoreFoundation.CFRunLoopCopyAllModes(rl) else { return nil }
    return unsafeBitCast(modes, to: NSArray.self)
}

/// The names of all modes that a loop has, as strings.
@discardableResult
public func CFRunLoopCopyAllModes(_ rl: CFRunLoop) -> NSArray! {
    let loop: CFRunLoop! = rl
    return CFRunLoopCopyAllModes(loop)
}

/// Runs the current thread's loop in a mode.
///
/// - Parameters:
///   - mode: the mode; not the common modes.
///   - seconds: for how long; 0 for one pass that does not wait.
///   - returnAfterSourceHandled: whether to return once a source was handled.
/// - Returns: why it returned; `.finished` at once for a mode without sources and timers.
@discardableResult
public func CFRunLoopRunInMode(
    _ mode: CFRunLoopMode!, _ seconds: CFTimeInterval, _ returnAfterSourceHandled: Bool
) -> CFRunLoopRunResult {
    guard areGiven(mode?.rawValue) else { return .finished }
    return CoreFoundation.CFRunLoopRunInMode(mode.asCoreFoundation, seconds, returnAfterSourceHandled)
}

/// When the next timer of a mode is due; 0 when there is none.
@discardableResult
public func CFRunLoopGetNextTimerFireDate(_ rl: CFRunLoop!, _ mode: CFRunLoopMode!) -> CFAbsoluteTime {
    guard areGiven(rl, mode?.rawValue) else { return 0 }
    return CoreFoundation.CFRunLoopGetNextTimerFireDate(rl, mode.asCoreFoundation)
}

/// Calls a block once on the thread of a loop, in a mode. It does not wake the loop.
///
/// - Parameters:
///   - rl: the loop.
///   - mode: a mode's name (`NSString`) or a ``CFRunLoopMode``, or an array of them. Others are refused, with a line on
///     standard error.
///   - block: the block, retained until it has run.
@_disfavoredOverload
public func CFRunLoopPerformBlock(_ rl: CFRunLoop!, _ mode: CFTypeRef!, _ block: (() -> Void)!) {
    perform(rl, mode, block)
}

/// Calls a block once on the thread of a loop, in the mode with a name. It does not wake the loop.
public func CFRunLoopPerformBlock(_ rl: CFRunLoop!, _ mode: CFString, _ block: (() -> Void)!) {
    perform(rl, mode, block)
}

/// Calls a block once on the thread of a loop, in any of several modes. It does not wake the loop.
public func CFRunLoopPerformBlock(_ rl: CFRunLoop!, _ modes: NSArray, _ block: (() -> Void)!) {
    perform(rl, modes, block)
}

private func perform(_ rl: CFRunLoop!, _ mode: CFTypeRef!, _ block: (() -> Void)!) {
    guard areGiven(rl, mode, caller: "CFRunLoopPerformBlock(_:_:_:)"), let block else { return }
    if let name = modeName(mode) { return CoreFoundation.CFRunLoopPerformBlock(rl, name, block) }
    let names = (mode as? NSArray)?.map { modeName($0) }
    guard let names, !names.contains(where: { $0 == nil }) else {
        return logRefusal("a block's mode is no mode, and no array of modes", by: "CFRunLoop")
    }
    let modes = names.compactMap { $0.map { unsafeBitCast($0, to: NSString.self) } }
    CoreFoundation.CFRunLoopPerformBlock(rl, modes as NSArray, block)
}

/// The name of a mode that was given as any object.
private func modeName(_ mode: Any?) -> CoreFoundation.CFString? {
    if let mode = mode as? CFRunLoopMode { return mode.asCoreFoundation }
    return (mode as? NSString).map { CFRunLoopMode(rawValue: $0).asCoreFoundation }
}
