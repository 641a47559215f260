// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Which items are in which modes of a loop.

extension RunLoopState {
    /// Adds an item to a mode, or to all common modes.
    ///
    /// - Returns: the modes in which it is new.
    mutating func add(_ item: RunLoopItem, to mode: RunLoopMode) -> [Int] {
        if hasEnded { return [] }
        guard mode == .common else {
            let index = makeIndex(of: mode)
            commonItems[item.id]?.ownModes.insert(index)
            return enter(item, index) ? [index] : []
        }
        if commonItems[item.id] == nil {
            lastSerial += 1
            commonItems[item.id] = CommonItem(item: item, serial: lastSerial, ownModes: Set(modes(of: item.id)))
        }
        return commonModes.sorted { $0.rawValue < $1.rawValue }.map { makeIndex(of: $0) }.filter { enter(item, $0) }
    }

    /// Puts an item into a mode.
    ///
    /// - Returns: whether it is new there.
    private mutating func enter(_ item: RunLoopItem, _ index: Int) -> Bool {
        if case .source(let source) = item, source.isPortBased { return seat(source, index) }
        if let resident = residents[item.id] {
            if resident.places.contains(index) { return false }
            residents[item.id]?.places.append(index)
        } else {
            residents[item.id] = Resident(item: item, places: ModeList(index))
        }
        modes[index].insert(item)
        return true
    }

    /// Puts a port-based source into a mode.
    private mutating func seat(_ source: RunLoopSource, _ index: Int) -> Bool {
        if seats.seat(of: source.id, in: index) != nil { return false }
        let number = seats.take(for: source, in: index)
        modes[index].count(.source(source), 1)
        modes[index].ready.insert(number, order: source.order, &seats)
        return true
    }

    private func modes(of id: ItemID) -> [Int] {
        residents[id]?.places.all ?? seats.modes(of: id)
    }

    /// The modes that an item is in.
    mutating func places(of id: ItemID) -> [Int] {
        let found = modes(of: id)
        modeSteps += found.count
        return found
    }

    /// Removes an item from a mode, or from the common modes: then it stays in those to which it was added
    /// individually.
    ///
    /// - Returns: the modes that it has left, with the registrations of its descriptor.
    mutating func remove(_ id: ItemID, from mode: RunLoopMode) -> [Departure] {
        guard mode == .common else {
            guard let index = index(of: mode) else { return [] }
            commonItems[id]?.ownModes.remove(index)
            return leave(id, [index])
        }
        guard let common = commonItems.removeValue(forKey: id) else { return [] }
        return leave(id, places(of: id).sorted().filter { !common.ownModes.contains($0) })
    }

    /// Removes an item from everything.
    mutating func removeEverywhere(_ id: ItemID) -> [Departure] {
        commonItems[id] = nil
        return leave(id, places(of: id).sorted())
    }

    /// A mode that an item has left.
    struct Departure: Sendable {
        var mode: Int
        var name: RunLoopMode
        var watch: DescriptorWatch?
    }

    private mutating func leave(_ id: ItemID, _ indices: [Int]) -> [Departure] {
        guard let resident = residents[id] else { return indices.compactMap { unseat(id, $0) } }
        let leaving = indices.filter { resident.places.contains($0) }
        let staying = ModeList(resident.places.all.filter { !leaving.contains($0) })
        residents[id] = staying.map { Resident(item: resident.item, places: $0) }
        for index in leaving { modes[index].remove(resident.item) }
        return leaving.map { Departure(mode: $0, name: modes[$0].name) }
    }

    /// Removes a port-based source from a mode.
    private mutating func unseat(_ id: ItemID, _ index: Int) -> Departure? {
        guard let number = seats.seat(of: id, in: index), let source = seats.list[number].source else { return nil }
        let departure = Departure(mode: index, name: modes[index].name, watch: watch(of: number))
        modes[index].count(.source(source), -1)
        modes[index].ready.remove(number, &seats)
        modes[index].recentReports.remove(number)
        seats.giveUp(number)
        return departure
    }

    /// The watch of a port-based source's descriptor in the mode of a registration.
    func watch(of number: RegistrationIndex) -> DescriptorWatch? {
        guard let watch = seats.watch(of: number), let set = modes[Int(seats.list[number].mode)].descriptors
        else { return nil }
        return DescriptorWatch(set: set, key: watch.key, descriptor: watch.descriptor)
    }

    /// Whether an item is in a mode.
    func isMember(_ id: ItemID, of mode: Int) -> Bool {
        residents[id]?.places.contains(mode) ?? (seats.seat(of: id, in: mode) != nil)
    }

    /// The custom source with this number, if it is in the mode.
    func customSource(_ id: ItemID, in mode: Int) -> RunLoopSource? {
        guard let resident = residents[id], resident.places.contains(mode), case .source(let source) = resident.item
        else { return nil }
        return source
    }

    /// The timer with this number, if it is in the mode.
    func timer(_ id: ItemID, in mode: Int) -> RunLoopTimer? {
        guard case .timer(let timer) = residents[id]?.item, isMember(id, of: mode) else { return nil }
        return timer
    }

    func contains(_ id: ItemID, in mode: RunLoopMode) -> Bool {
        if mode == .common { return commonItems[id] != nil }
        return index(of: mode).map { isMember(id, of: $0) } ?? false
    }

    /// Whether the item is in any mode of this loop.
    func contains(_ id: ItemID) -> Bool {
        commonItems[id] != nil || residents[id] != nil || seats.seat(of: id) != nil
    }

    /// Makes a mode common.
    ///
    /// - Returns: the items that are new in it, in the order in which they were added to the common modes.
    mutating func addCommonMode(_ mode: RunLoopMode) -> [(item: RunLoopItem, mode: Int)] {
        guard !hasEnded, mode != .common, commonModes.insert(mode).inserted, !commonItems.isEmpty else { return [] }
        let index = makeIndex(of: mode)
        return commonItems.values.sorted { $0.serial < $1.serial }.map(\.item)
            .filter { enter($0, index) }.map { ($0, index) }
    }

    /// Every item that is in this loop, some more than once.
    var everyItem: [RunLoopItem] {
        residents.values.map(\.item) + seats.all.map { .source($0.source) } + commonItems.values.map(\.item)
    }

    /// Every source, with each mode that it is in: by mode, the oldest first.
    var sourcesByMode: [(source: RunLoopSource, mode: Int)] {
        let custom = residents.values.flatMap { resident -> [(source: RunLoopSource, mode: Int)] in
            guard case .source(let source) = resident.item else { return [] }
            return resident.places.all.map { (source, $0) }
        }
        return (custom + seats.all).sorted { ($0.mode, $0.source.id) < ($1.mode, $1.source.id) }
    }
}
