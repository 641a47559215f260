// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import RunLoopCore

/// What one end of a connection brings for its rings: memory that it alone writes, and the channel by which its loop is woken.
final class RingEnd: Sendable {
    let memory: SharedMemory  // immutable
    let wakeChannel: WakeChannelWatch  // immutable
    /// Of the budget for channels: this end's descriptor, and the peer's.
    private static let channelCount = 2

    private init(_ memory: SharedMemory, _ channel: WakeChannel) {
        self.memory = memory
        wakeChannel = WakeChannelWatch(channel)
    }

    deinit {
        DescriptorBudget.wakeChannels.give(Self.channelCount)
    }

    /// Makes an end.
    ///
    /// - Returns: the end, and what the peer is to get: the memory's file, and the other end of the channel.
    /// - Throws: EMFILE, also where the process has enough channels; why there is no memory.
    static func make() throws(SystemError) -> (end: RingEnd, descriptors: [SharedDescriptor]) {
        guard DescriptorBudget.wakeChannels.take(channelCount) else { throw SystemError(EMFILE) }
        do throws(SystemError) {
            let (memory, file) = try SharedMemory.make(size: SharedRing.memorySize)
            let (channel, sending) = try WakeChannel.make()
            return (RingEnd(memory, channel), [file, sending])
        } catch {
            DescriptorBudget.wakeChannels.give(channelCount)
            throw error
        }
    }
}
