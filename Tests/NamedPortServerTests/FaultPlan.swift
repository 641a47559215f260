// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import Glibc
import PortSystem

/// One call of a run, and the fault that it meets.
struct FaultPlan: Sendable, CustomStringConvertible {
    let call: SystemCall
    let index: Int
    let fault: SystemCallFaults.Fault
    /// How many times in a row.
    let times: Int

    /// Each call of a run, one after the other, with each error that it can meet on a system short of resources.
    ///
    /// - Parameters:
    ///   - calls: how often each call is made in a run without faults.
    ///   - count: the least number of plans; after the last the first are repeated.
    /// - Returns: the plans, none when there are no calls.
    static func all(_ calls: [SystemCall: Int], atLeast count: Int) -> [FaultPlan] {
        let plans = all(calls)
        if plans.isEmpty { return [] }
        return plans + (plans.count..<max(count, plans.count)).map { plans[$0 % plans.count] }
    }

    private static func all(_ calls: [SystemCall: Int]) -> [FaultPlan] {
        calls.sorted { $0.key.rawValue < $1.key.rawValue }.flatMap { call, count in
            (0..<count).flatMap { index in
                let once = errors(of: call).map { FaultPlan(call: call, index: index, fault: .fail($0), times: 1) }
                let short =
                    isTransfer(call) ? [FaultPlan(call: call, index: index, fault: .shorten(to: 8), times: 1)] : []
                return once + short + [FaultPlan(call: call, index: index, fault: .fail(EINTR), times: 3)]
            }
        }
    }

    var rules: [SystemCallFaults.Rule] { [.init(call, fault, times: times, skipping: index)] }

    var description: String { "\(call) number \(index): \(fault), \(times) times" }

    /// At least 8 bytes are always transferred: an eventfd accepts no fewer.
    private static func isTransfer(_ call: SystemCall) -> Bool { call == .read || call == .write }

    /// None for `epoll_ctl`: a removal from a set cannot be refused, and is the same call. Other tests refuse
    /// additions.
    private static func errors(of call: SystemCall) -> [CInt] {
        switch call {
        case .open: [EMFILE, ENFILE, ENOSPC]
        case .socket: [EMFILE, ENFILE, ENOBUFS]
        case .accept: [EMFILE, ENFILE, ENOBUFS, EAGAIN]
        case .connect: [EAGAIN]
        case .epoll_create, .eventfd, .pipe, .dup: [EMFILE, ENFILE]
        case .sendmsg, .recvmsg: [EAGAIN, ENOBUFS, ENOMEM]
        case .bind, .listen, .getsockopt: [ENOBUFS, ENOMEM]
        case .write, .rename, .mkdir: [ENOSPC]
        case .unlink: [EROFS]
        case .fcntl: [ENOLCK]
        case .poll: [ENOMEM]
        default: []
        }
    }
}

#endif
