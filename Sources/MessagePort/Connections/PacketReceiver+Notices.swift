// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension PacketReceiver {
    /// Does what a packet amounts to that is about the port, or the way of a message, and not for the port's handler.
    func follow(
        _ notice: PacketAssembly.Event, _ state: inout ReceiveState, _ sink: (any MessageSink)?,
        from connection: SocketConnection
    ) -> Bool {
        switch notice {
        case .portEnded:
            if connection.isPortsEnd { return connection.refuse(.malformedPacket) }
            connection.otherPortDidEnd(.invalidated)
        case .portMoved:
            if connection.isPortsEnd { return connection.refuse(.malformedPacket) }
            connection.sender.credit.portDidMove()
            connection.sharedMemory.object?.ownerMayHaveMoved()
            connection.loseRings(&state.channel.path)
            state.channel.awaitsOwner = true
            connection.passCredentials(true)
        case .ownerNamed:
            if !state.channel.awaitsOwner { return connection.refuse(.malformedPacket) }
            state.channel.awaitsOwner = false
            connection.ownerDidChange(to: state.channel.lastSender)
        case .statisticsAsked(let token):
            if !connection.isPortsEnd { return connection.refuse(.malformedPacket) }
            if let sink { connection.answerStatisticsQuery(token, about: sink) }
        case .tapAsked(let byteLimit):
            if !connection.isPortsEnd { return connection.refuse(.malformedPacket) }
            if let sink { connection.beginTap(of: sink, byteLimit: byteLimit) }
        case .handOverAsked(let question):
            if !connection.isPortsEnd || connection.isAskingForMove { return connection.refuse(.malformedPacket) }
            if let sink { connection.beginHandOver(of: sink, question) }
        case .probed(let probe, let token):
            if !connection.isPortsEnd { return connection.refuse(.malformedPacket) }
            connection.didReceive(probe, about: token)
        case .probeAnswered(let probe, let token, let hasReturned):
            if connection.isPortsEnd { return connection.refuse(.malformedPacket) }
            connection.didReceiveAnswer(probe, about: token, hasReturned: hasReturned)
        case .returnPage, .returned, .segmentEnded:
            if !connection.didReceive(aboutMemory: notice) { return connection.refuse(.malformedPacket) }
        // Answers to queries come over connections of their own.
        default: return connection.refuse(.malformedPacket)
        }
        return true
    }
}
