// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

extension RunLoopSource {
    /// Sets, replaces or clears the descriptor of a port-based source, also while the source is in loops.
    ///
    /// The source is ready when its check says so or the descriptor is readable, at its end or in error. The loop never
    /// reads the descriptor. The caller keeps it open until it is replaced or the source is invalid. An invalid source
    /// watches nothing. Traps for a custom source.
    ///
    /// - Parameter descriptor: an open descriptor, which remains the caller's; nil for none.
    /// - Throws: `EBADF` when it is not open, `EPERM` when it cannot be waited for (a regular file), `EMFILE`,
    ///   `ENFILE`, `ENOSPC` or `ENOMEM` when the kernel lacks the resources. Then nothing has changed. A source that is
    ///   in no loop is tested with a descriptor of its own; when there is none left for that, the loop that it enters
    ///   reports the error.
    public func watch(_ descriptor: CInt?) throws(SystemError) {
        let isInNoLoop = isPortBased && state.withLock { $0.membership.isValid && $0.membership.loops.isEmpty }
        if isInNoLoop, let descriptor { try Self.checkPollable(descriptor) }
        try watch(pollable: descriptor)
    }

    /// Adding it to an epoll set shows whether a descriptor can be waited for.
    private static func checkPollable(_ descriptor: CInt) throws(SystemError) {
        do throws(SystemError) {
            try EpollSet().add(descriptor, .readable, key: 0)
        } catch {
            if !error.isDescriptorLimit { throw error }
        }
    }

    /// The same with a descriptor that can be waited for: nothing is opened to check that.
    ///
    /// - Throws: as ``watch(_:)``, for a source that is in a loop.
    package func watch(pollable descriptor: CInt?) throws(SystemError) {
        if !isPortBased {
            fatalError("A custom source cannot watch a descriptor. Make a port-based source for it.")
        }
        try state.withLock { (state) throws(SystemError) in
            guard state.membership.isValid else { return }
            if let descriptor {
                try watch(descriptor, in: state.membership.loops)
            } else {
                for loop in state.membership.loops {
                    for registration in loop.exchangeRegistrations(of: self, [:]) { registration.end(for: self) }
                }
            }
            state.descriptor = descriptor
        }
    }

    /// Watches a descriptor that can be waited for, in place of the old one: now, or as soon as the kernel can.
    package func watchSoon(pollable descriptor: CInt) {
        let late = state.withLock { state -> [ThreadRunLoop] in
            guard state.membership.isValid else { return [] }
            let failure = watchFailure(descriptor, in: state.membership.loops)
            if let failure, !failure.isShortage { return [] }
            state.descriptor = descriptor
            return failure == nil ? [] : Array(state.membership.loops)
        }
        for loop in late { watchLater(in: loop) }
    }

    /// The kernel lacks the resources to watch the descriptor: descriptors, memory or watches have run out. So the
    /// source is in its modes without being watched, and a timer there tries again until it succeeds. Each loop has its
    /// own timer, as another loop may not run, or may end.
    func watchLater(in loop: ThreadRunLoop) {
        let made = RunLoopTimer(name: "watch again", after: Tuning.timeUntilRetry) { [weak self, id] _ in
            let loop = ThreadRunLoop.current
            let timer = loop.state.withLock { $0.watchRetryTimers.removeValue(forKey: id) }
            self?.retryWatch(in: loop)
            withExtendedLifetime(timer) {}
        }
        let (timer, modes) = loop.state.withLock { state -> (RunLoopTimer, [RunLoopMode]) in
            let modes = state.memberModes(of: id).map { state.modes[$0].name }
            let timer = state.watchRetryTimers[id] ?? made
            if !modes.isEmpty { state.watchRetryTimers[id] = timer }  // else the source has left the loop
            return (timer, modes)
        }
        for mode in modes { loop.add(timer, to: mode) }
    }

    private func retryWatch(in loop: ThreadRunLoop) {
        let isShort = state.withLock { state in
            state.descriptor.flatMap { watchFailure($0, in: [loop]) }?.isShortage ?? false
        }
        if isShort { watchLater(in: loop) }
    }

    /// As `watch`, below.
    ///
    /// - Returns: why the kernel does not watch it; nil when it does.
    func watchFailure(_ descriptor: CInt, in loops: SmallList<ThreadRunLoop>) -> SystemError? {
        do throws(SystemError) {
            try watch(descriptor, in: loops)
            return nil
        } catch {
            return error
        }
    }

    /// Registers a descriptor with every mode of the loops that the source is in, in place of the old one. The caller
    /// holds the source's lock, so the source itself neither enters nor leaves a mode meanwhile.
    func watch(_ descriptor: CInt, in loops: SmallList<ThreadRunLoop>) throws(SystemError) {
        var begun: [DescriptorRegistration] = []
        var replaced: [DescriptorRegistration] = []
        var fresh: [(loop: ThreadRunLoop, registrations: [Int: DescriptorRegistration])] = []
        do throws(SystemError) {
            for loop in loops {
                var registrations: [Int: DescriptorRegistration] = [:]
                for mode in loop.modeIndices(of: self) {
                    let (registration, isNew) = try loop.descriptorSet(of: mode).join(descriptor, self)
                    if isNew { begun.append(registration) }
                    registrations[mode] = registration
                }
                fresh.append((loop, registrations))
            }
        } catch {
            for registration in begun { registration.end(for: self) }
            throw error
        }
        for (loop, registrations) in fresh { replaced += loop.exchangeRegistrations(of: self, registrations) }
        for registration in replaced { registration.end(for: self) }
    }

    /// Whether the source is ready: its check says so, or the kernel reported its descriptor in this very pass. An
    /// older report is confirmed by a poll, unless performing the source finds that out itself. A run that polls has
    /// only one pass, which must go to a source that is really ready, so it always confirms an older report.
    func isReady(_ descriptor: DescriptorState?, pass: Int, polls: Bool) -> Bool {
        if routine.isReady() { return true }
        guard let descriptor else { return false }
        let report = descriptor.report
        if report == pass || report != nil && !polls && routine.checksWhenPerformed { return true }
        return (try? sysPoll(descriptor.raw, .readable, until: .distantPast))?.isEmpty != true
    }
}

extension ThreadRunLoop {
    func modeIndices(of source: RunLoopSource) -> [Int] {
        state.withLock { $0.memberModes(of: source.id) }
    }

    /// The kernel's set of a mode, made with the first descriptor.
    func descriptorSet(of mode: Int) throws(SystemError) -> DescriptorSet {
        if let set = state.withLock({ $0.modes[mode].descriptors }) { return set }
        let made = try DescriptorSet(wakeEvent: try parker.wakeEvent())
        let set = state.withLock { state in
            if state.modes[mode].descriptors == nil, !state.hasEnded { state.modes[mode].descriptors = made }
            return state.modes[mode].descriptors ?? made
        }
        // A loop that sleeps without a set must return and wait on this one.
        parker.endWait()
        return set
    }

    /// Replaces the registrations of a source's descriptor, by mode.
    ///
    /// - Returns: those that must end: the old ones, and new ones for modes that the source is no longer in.
    func exchangeRegistrations(of source: RunLoopSource, _ fresh: [Int: DescriptorRegistration])
        -> [DescriptorRegistration]
    {
        state.withLock { state in
            var ending: [DescriptorRegistration] = []
            let memberModes = state.memberModes(of: source.id)
            for index in memberModes {
                guard let number = state.registrations.registration(of: source.id, in: index) else { continue }
                let old = state.descriptorRegistration(of: number)
                // A pending report belongs to the source, whichever descriptor it has.
                let report = state.registrations.descriptor(of: number)?.report
                let descriptor = fresh[index].map { DescriptorState(key: $0.key, raw: $0.descriptor, report: report) }
                state.registrations.setDescriptor(descriptor, of: number)
                if let old, old.key != fresh[index]?.key { ending.append(old) }
            }
            for (index, new) in fresh where !memberModes.contains(index) { ending.append(new) }
            return ending
        }
    }
}
