// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import NamedPortServer

/// Stores notes, and answers requests for them.
struct NoteService: Sendable {
    private let notes = LoopBound<[Int: String]>([:])
    private let lastNumber = LoopBound(0)

    func run() throws(PortError) {
        let port = MachPort { port, message in
            do {
                try answer(message, at: port)
            } catch let error as PortError {
                try? message.replyError(NoteRequest.notUnderstood, "\(error)")
            } catch {
                try? message.replyError(NoteRequest.noSuchNote, "\(error)")
            }
        }
        // For a directory that is not shared, this admits only this user's processes.
        port.setPeerPolicy(try .members(of: .shared))
        try takeName(port)
        try port.schedule()
        let traces = try TraceService.start()  // for portctl trace
        defer { traces.stop() }
        print("serves \(NoteRequest.portName)")
        fflush(nil)  // at once, also into a pipe
        ThreadRunLoop.main.run()
        port.invalidate()
        print("served \(lastNumber.value) notes")
    }

    /// Checks in for the name when a supervisor has started the service; otherwise registers it.
    private func takeName(_ port: MachPort) throws(PortError) {
        do throws(PortError) {
            try PortNameServer.shared.checkIn(port, name: NoteRequest.portName)
        } catch {
            guard error.code == .nameNotDeclared else { throw error }
            try PortNameServer.shared.register(port, name: NoteRequest.portName)
        }
    }

    private func answer(_ message: MachMessage, at port: MachPort) throws {
        switch message.id {
        case NoteRequest.add:
            lastNumber.value += 1
            notes.value[lastNumber.value] = try message.content(as: String.self)
            try message.reply(content: lastNumber.value)
        case NoteRequest.list:
            let lines = notes.value.sorted { $0.key < $1.key }.map { "\($0.key)  \($0.value)" }
            try message.reply(content: lines)
        case NoteRequest.remove:
            let number = try message.content(as: Int.self)
            guard notes.value.removeValue(forKey: number) != nil else { throw NoSuchNote(number: number) }
            try message.reply(MachMessage())
        case NoteRequest.stop:
            try message.reply(MachMessage())
            ThreadRunLoop.main.stop()
        default:
            try message.replyError(NoteRequest.notUnderstood, "There is no request \(message.id).")
        }
    }
}

struct NoSuchNote: Error, CustomStringConvertible {
    var number: Int

    var description: String { "There is no note \(number)." }
}
