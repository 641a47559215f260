// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The requests of a loop that wait for their call, found by number and by target.
struct PerformRequests: Sendable {
    private var requests: [ItemID: PerformRequest] = [:]
    private var idsByTarget: [ObjectIdentifier: Set<ItemID>] = [:]

    var isEmpty: Bool { requests.isEmpty && idsByTarget.isEmpty }

    mutating func insert(_ request: PerformRequest) {
        requests[request.id] = request
        if let target = request.targetID { idsByTarget[target, default: []].insert(request.id) }
    }

    /// Removes a request.
    ///
    /// - Returns: the request, for the caller to release without the lock.
    mutating func remove(_ id: ItemID) -> PerformRequest? {
        guard let request = requests.removeValue(forKey: id) else { return nil }
        if let target = request.targetID {
            idsByTarget[target]?.remove(id)
            if idsByTarget[target]?.isEmpty == true { idsByTarget[target] = nil }
        }
        return request
    }

    /// The requests for a target, in the order in which they were made.
    func requests(for target: ObjectIdentifier) -> [PerformRequest] {
        (idsByTarget[target] ?? []).sorted().compactMap { requests[$0] }
    }

    /// All requests, in the order in which they were made.
    var all: [PerformRequest] {
        requests.values.sorted { $0.id < $1.id }
    }
}
