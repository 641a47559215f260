// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import RunLoopCore

func runLoopsFromZero() throws {
    try emptyLoop()
    try sources()
    try descriptors()
    modes()
    observers()
    try nested()
}

private func emptyLoop() throws {
    let loop = ThreadRunLoop.current
    print("nothing to wait for: \(loop.run())")

    loop.add(RunLoopTimer(after: .milliseconds(10)) { _ in print("the timer fires") })
    print("nothing left: \(loop.run())")
}

private func sources() throws {
    let loop = ThreadRunLoop.current
    let source = RunLoopSource(name: "custom") { print("the source was signalled") }
    loop.add(source)

    let visitor = try ResidentThread(name: "visitor")
    try visitor.perform { source.signal() }
    print("one event: \(loop.run(for: .seconds(10), returnAfterSourceHandled: true))")
    source.invalidate()
}

private func descriptors() throws {
    let loop = ThreadRunLoop.current
    let pipe = Pipe()
    let reader = RunLoopSource(name: "pipe", descriptor: pipe.fileHandleForReading.fileDescriptor) {
        let data = pipe.fileHandleForReading.availableData
        if data.isEmpty {
            print("the pipe is at its end")
            loop.stop()
        } else {
            print("read \(data.count) bytes")
        }
    }
    loop.add(reader)

    let writer = try ResidentThread(name: "writer")
    try writer.perform {
        try pipe.fileHandleForWriting.write(contentsOf: Data("hello".utf8))
        try pipe.fileHandleForWriting.close()
    }
    print("the pipe: \(loop.run())")
    reader.invalidate()
}

private func modes() {
    let loop = ThreadRunLoop.current
    let drag: RunLoopMode = "org.example.drag"
    loop.perform { print("the default mode's block") }
    loop.perform(in: [drag]) { print("the drag mode's block") }

    print("drag: \(loop.run(mode: drag, for: .zero))")
    print("default: \(loop.run(for: .zero))")
}

private func observers() {
    let loop = ThreadRunLoop.current
    let observer = RunLoopObserver(activities: .all) { _, activity in print("    \(activity)") }
    loop.add(observer)
    loop.perform { print("    a block") }
    loop.run(for: .zero)
    observer.invalidate()
}

private func nested() throws {
    let loop = ThreadRunLoop.current
    let inner: RunLoopMode = "org.example.inner"
    loop.perform {
        loop.perform { print("served when the inner run is over") }
        loop.add(RunLoopTimer(after: .milliseconds(10)) { _ in print("served by the inner run") }, to: inner)
        print("the inner run begins")
        print("the inner run is over: \(loop.run(mode: inner, for: .seconds(10)))")
    }
    print("the outer run is over: \(loop.run())")
}
