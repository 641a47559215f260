// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What the leak check counts. It is read only with the C library, not with the wrappers that the tests are about.

import Glibc
import MessagePort
import PortSystem
import Testing

/// What this process has at one moment: each thing as a line of text.
package struct ProcessState: Sendable {
    private(set) var descriptors: Set<String>
    private(set) var threads: Set<String>
    private(set) var children: Set<String>
    private(set) var directories: Set<String>

    /// Reads the present state.
    ///
    /// - Parameter threadNames: beginnings of the kernel names of threads that count, besides those that `runOnThread`
    ///   started.
    package init(threadNames: [String] = []) {
        descriptors = openDescriptors()
        threads = Set(LiveThreads.current.map { "thread \($0.value) of runOnThread, number \($0.key), was not joined" })
        for thread in directoryEntries("/proc/self/task") {
            guard let name = firstLine("/proc/self/task/\(thread)/comm") else { continue }
            if threadNames.contains(where: name.hasPrefix) { threads.insert("thread \(thread) named \(name)") }
        }
        children = Set(childProcesses().map { "child process \($0)" })
        directories = Set(ScratchDirectory.inUse.map { "scratch directory \($0)" })
    }

    /// The things that are there now and were not before, and vice versa.
    package func differences(from before: ProcessState) -> [String] {
        let kinds: [KeyPath<ProcessState, Set<String>>] = [\.descriptors, \.threads, \.children, \.directories]
        return kinds.flatMap { kind -> [String] in
            let (old, new) = (before[keyPath: kind], self[keyPath: kind])
            return new.subtracting(old).sorted().map { "left behind: \($0)" }
                + old.subtracting(new).sorted().map { "gone, though another's: \($0)" }
        }
    }
}

/// The open descriptors and what each is open on, without the one that this function reads with, and without the
/// library's spare one, which has another number after each use. A missing spare is reported.
///
/// Dispatch checks once a second, on its manager's thread, whether its workers run: it opens `/proc/<thread>/stat`,
/// reads and closes. So does a thread of the library that asks how many processors it may use, with a file of the control
/// group. A listing with such a descriptor is repeated until that is closed or the watchdog expires, so one
/// that stays open is still reported.
package func openDescriptors() -> Set<String> {
    let deadline = Watchdog.deadline
    while true {
        // A separate thread closes descriptors that came in messages.
        let isClosing = !AsyncCloser.isIdle
        let spare = ReservedDescriptor.shared.rawValue
        let descriptors = listedDescriptors(without: spare)
        let isSettled = !isClosing && spare == ReservedDescriptor.shared.rawValue
        if isSettled, !descriptors.contains(where: isOpenForAMoment) { return descriptors }
        if .now >= deadline {
            Watchdog.expired(isClosing ? "descriptors are being closed" : "the list of descriptors changes")
            return descriptors
        }
        yieldThread()
    }
}

/// Whether it is the status of a thread, or the quota of the process, which any thread may read now and then.
private func isOpenForAMoment(_ descriptor: String) -> Bool {
    let path = descriptor.drop { $0 != "/" }
    if path.hasPrefix("/sys/fs/cgroup/") { return true }
    let parts = path.split(separator: "/")
    return parts.count == 3 && parts[0] == "proc" && Int(parts[1]) != nil && parts[2] == "stat"
}

private func listedDescriptors(without spare: CInt?) -> Set<String> {
    let path = "/proc/self/fd"
    guard let stream = opendir(path) else { preconditionFailure("\(path) cannot be read (errno \(errno)).") }
    let uncounted = [String(dirfd(stream)), spare.map { String($0) }]
    let names = names(in: stream).filter { !uncounted.contains($0) }
    defer { closedir(stream) }
    let missing = ReservedDescriptor.shared.isMissing ? ["no spare descriptor, though there was one"] : []
    return Set(
        names.compactMap { name in
            var target = [CChar](repeating: 0, count: 1024)
            let length = readlink("\(path)/\(name)", &target, target.count)
            if length < 0 { return nil }  // closed since it was listed
            let text = String(decoding: target.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return "descriptor \(name) open on \(text)"
        } + missing)
}

/// The children that were not waited for, running or ended.
func childProcesses(of process: String = "self") -> Set<String> {
    var found: Set<String> = []
    for thread in directoryEntries("/proc/\(process)/task") {
        let line = firstLine("/proc/\(process)/task/\(thread)/children") ?? ""
        found.formUnion(line.split(separator: " ").map(String.init))
    }
    return found
}

/// The children of a process, their children, and so on.
func descendants(of process: String) -> [String] {
    childProcesses(of: process).sorted().flatMap { [$0] + descendants(of: $0) }
}

/// The threads of a process, each with its name, its state as in proc_pid_stat(5), and the kernel function in which it
/// waits.
func whatThreadsAreAt(inProcess process: String) -> [String] {
    directoryEntries("/proc/\(process)/task").map { thread in
        let directory = "/proc/\(process)/task/\(thread)"
        let facts = (firstLine("\(directory)/stat") ?? "?").split(separator: " ").prefix(3).joined(separator: " ")
        return "process \(process), thread \(facts) \(firstLine("\(directory)/wchan") ?? "")"
    }
}

func directoryEntries(_ path: String) -> [String] {
    guard let stream = opendir(path) else { return [] }
    defer { closedir(stream) }
    return names(in: stream)
}

private func names(in stream: OpaquePointer) -> [String] {
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if !name.hasPrefix(".") { names.append(name) }
    }
    return names
}

private func firstLine(_ path: String) -> String? {
    lines(path).first
}

/// The lines of a file of proc(5), as far as they are in its first 4,096 bytes; none when it cannot be read.
func lines(_ path: String) -> [String] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return [] }
    return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n").map(String.init)
}

/// How many threads the process has now.
package func threadCount() -> Int { directoryEntries("/proc/self/task").count }
