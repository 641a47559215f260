// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort

func portsInTasks() async throws {
    try await messages()
    try await actors()
    try await cancelling()
}

private func messages() async throws {
    let port = MachPort()
    let service = Task {
        for try await message in port.messages {
            try message.reply(MachMessage(text: "you said \(message.text)"))
        }
        print("the port has ended")
    }

    let right = port.makeSendRight()
    let reply = try await right.request(MachMessage(text: "hello"))
    print(reply.text)

    port.invalidate()
    try await service.value
}

/// Counts letters, on the thread of a run loop, where its port's messages come too.
private actor Counter {
    private let thread: ResidentThread
    private var count = 0

    init(on thread: ResidentThread) { self.thread = thread }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.loop.asUnownedSerialExecutor() }

    func add(_ text: String) -> Int {
        count += text.count
        return count
    }

    nonisolated func serve(_ port: MachPort) throws {
        port.setHandler { [self] _, message in
            assumeIsolated { counter in
                try? message.reply(content: counter.add((try? message.content(as: String.self)) ?? ""))
            }
        }
        try port.schedule(on: thread.loop)
    }
}

private func actors() async throws {
    let counter = Counter(on: try ResidentThread(name: "counter"))
    let port = MachPort()
    try counter.serve(port)

    let letters: Int = try await port.makeSendRight().request("seven")
    print(letters)
    print(await counter.add("two"))
    port.invalidate()
}

private func cancelling() async throws {
    let port = MachPort()
    let right = port.makeSendRight()
    let waiter = Task {
        do throws(PortError) {
            _ = try await right.request(MachMessage(text: "anybody?"))
        } catch {
            print("the task ends: \(error.code)")
        }
    }

    var messages = port.messages.makeAsyncIterator()
    if let request = try await messages.next() {
        waiter.cancel()
        await waiter.value
        print("the receiver knows: \(request.isCancelled)")
    }
}
