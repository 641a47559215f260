// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import RunLoopCore

// What the ends of a connection need for rings, and when they get them.

/// What one end of a connection contributes to its rings: memory that only it writes, and the channel through which its
/// loop is woken.
final class RingEnd: Sendable {
    let memory: SharedMemory  // immutable
    let wakeChannel: WakeChannelRegistration  // immutable
    /// How much of the channels' descriptor budget an end uses: its own descriptor, and the peer's.
    private static let channelCount = 2

    private init(_ memory: SharedMemory, _ channel: WakeChannel) {
        self.memory = memory
        wakeChannel = WakeChannelRegistration(channel)
    }

    deinit { DescriptorBudget.wakeChannels.release(Self.channelCount) }

    /// Makes an end.
    ///
    /// - Returns: the end, and the descriptors for the peer: the memory's file, and the other end of the channel.
    /// - Throws: EMFILE, also where the process has enough channels; why memory cannot be made.
    static func make() throws(SystemError) -> (end: RingEnd, descriptors: [SharedDescriptor]) {
        guard DescriptorBudget.wakeChannels.reserve(channelCount) else { throw SystemError(EMFILE) }
        do throws(SystemError) {
            let (memory, file) = try SharedMemory.make(size: SharedRing.memorySize)
            let (channel, sending) = try WakeChannel.make()
            return (RingEnd(memory, channel), [file, sending])
        } catch {
            DescriptorBudget.wakeChannels.release(channelCount)
            throw error
        }
    }
}

/// When the right's end of a connection offers rings.
enum RingPolicy: String, Sendable {
    /// With the first message.
    case always
    /// Once there was enough traffic.
    case earned
    case never

    /// The environment's choice at the first connection (`PORT_RING`); without one, once they are earned.
    static let standard = sysEnvironment("PORT_RING").flatMap(RingPolicy.init) ?? .earned
}
