// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem

// Which users may register which names in a shared directory: the file `rules` beside `names`, which the directory's
// owner or root has written. Each line is a rule; the first that fits a name decides, and where none fits only the
// directory's owner and root may register it:
//
//     org.example.store 1001             the name's file name, and the users who may register it
//     org.example.*     1001 1002        all that begin so
//     *                 *                any name, any member of the group
//
// An empty line, and one that begins with '#', has no meaning. Every reader of a record checks the rules too, so a file
// that another user has put in a name's place holds no name.

/// The rules of a shared directory.
struct NameRules: Equatable, Sendable {
    private struct Rule: Equatable, Sendable {
        var start: [UInt8]
        /// Whether it is for all file names that begin with this, not for this one alone.
        var isForMore: Bool
        /// Nil for every user.
        var users: Set<UInt32>?

        func fits(_ file: String) -> Bool {
            isForMore ? file.utf8.starts(with: start) : file.utf8.elementsEqual(start)
        }
    }

    /// How many bytes the file may have.
    static let limit = 65536
    private var rules: [Rule] = []

    /// Reads the file; nil when a line of it is no rule.
    init?(contents: [UInt8]) {
        for line in contents.split(separator: UInt8(ascii: "\n")) {
            let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard let pattern = words.first, pattern.first != UInt8(ascii: "#") else { continue }
            let star = UInt8(ascii: "*")
            let isForMore = pattern.last == star
            let start = isForMore ? Array(pattern.dropLast()) : Array(pattern)
            guard words.count > 1, !start.contains(star) else { return nil }
            let users = words.dropFirst().map { String(decoding: $0, as: UTF8.self) }
            if users == ["*"] {
                rules.append(Rule(start: start, isForMore: isForMore, users: nil))
            } else {
                let numbers = users.compactMap { UInt32($0) }
                guard numbers.count == users.count else { return nil }
                rules.append(Rule(start: start, isForMore: isForMore, users: Set(numbers)))
            }
        }
    }

    /// Whether a user that is not a keeper of the directory may register a name.
    func allow(_ user: UInt32, _ name: PortName) -> Bool {
        let file = name.fileName
        guard let rule = rules.first(where: { $0.fits(file) }) else { return false }
        return rule.users?.contains(user) ?? true
    }
}

extension NameRules {
    /// Whether a user may register a name in a directory of names. In one that is not shared, the user is the
    /// directory's own, and may.
    ///
    /// - Throws: `directoryUntrusted` when the rules cannot be relied on; `descriptorLimit`, `systemCallFailed`.
    static func allow(_ user: UInt32, _ name: PortName, in names: TrustedDirectory) throws(PortError) -> Bool {
        if !names.sharing.isShared || names.keepers.isAdministered(by: user) { return true }
        guard sysStandsForOneUser(user) else { return false }
        return try read(in: names)?.allow(user, name) ?? false
    }

    /// The rules of a shared directory; nil when it has none.
    private static func read(in names: TrustedDirectory) throws(PortError) -> NameRules? {
        guard let contents = try names.keepersFile("rules", limit: limit) else { return nil }
        guard let rules = NameRules(contents: contents) else {
            throw PortError(.directoryUntrusted, subject: .path(names.pathBeside("rules"), .notRules))
        }
        return rules
    }

    /// Which users may not have which names in a shared directory, for its keepers: the rules as they are now.
    ///
    /// - Returns: a function that says whether a user is known not to be allowed a name. Where users may have other
    ///   numbers here than the author of the rules meant, that is known of no user.
    static func denials(in names: TrustedDirectory) -> (UInt32, PortName) -> Bool {
        guard sysNumbersEachUser() else { return { _, _ in false } }
        do throws(PortError) {
            let rules = try read(in: names)
            return { !names.keepers.isAdministered(by: $0) && rules?.allow($0, $1) != true }
        } catch {
            return { _, _ in false }
        }
    }

    /// What the file of a name says, and which user owns it; nil when there is none, or that user may not register the
    /// name.
    ///
    /// - Throws: as `LockedFile.contents`, and as above.
    static func contents(
        of name: PortName, in names: TrustedDirectory
    ) throws(PortError) -> (contents: [UInt8], user: UInt32)? {
        guard let file = try LockedFile.signedContents(name.fileName, in: names), try allow(file.user, name, in: names)
        else { return nil }
        return file
    }
}

extension PortError.StaticReason {
    fileprivate static let notRules = Self(
        "a line of it is no rule: the file name of a name, or its beginning and `*`, and the numbers of users, or `*`")
}

extension PeerPolicy {
    /// Admits the processes that share a directory of names: those of this user, of the directory's owner, and those in
    /// its group. For a directory that is not shared, only this user's.
    ///
    /// - Parameter server: the name server of the directory.
    /// - Returns: the policy, for the directory as it is now.
    /// - Throws: as ``PortNameServer/list()``.
    public static func members(of server: PortNameServer) throws(PortError) -> PeerPolicy {
        guard case .group(let owner, let group, _) = try server.openDirectory().sharing else { return .sameUser }
        return .sameUser.or(.users([owner])).or(.groups([group]))
    }
}
