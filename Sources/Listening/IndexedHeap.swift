/// Keys by priority, the lowest first; a key's priority can change. A binary heap that knows where each key is: all changes take O(log n). A value.
struct IndexedHeap<Key: Hashable & Sendable, Priority: Comparable & Sendable>: Sendable {
    private var nodes: [(key: Key, priority: Priority)] = []
    private var positions: [Key: Int] = [:]

    var count: Int { self.nodes.count }
    var first: (key: Key, priority: Priority)? { self.nodes.first }

    func contains(_ key: Key) -> Bool { self.positions[key] != nil }

    /// Adds the key, or changes its priority.
    mutating func set(_ key: Key, _ priority: Priority) {
        if let position = self.positions[key] {
            self.nodes[position].priority = priority
            self.settle(position)
        } else {
            self.nodes.append((key, priority))
            self.positions[key] = self.nodes.count - 1
            self.rise(from: self.nodes.count - 1)
        }
    }

    mutating func remove(_ key: Key) {
        guard let position = self.positions.removeValue(forKey: key), let last = self.nodes.popLast() else { return }
        guard position < self.nodes.count else { return }
        self.nodes[position] = last
        self.positions[last.key] = position
        self.settle(position)
    }

    private mutating func settle(_ position: Int) { self.sink(from: self.rise(from: position)) }

    /// Returns where the node is then.
    @discardableResult
    private mutating func rise(from start: Int) -> Int {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard self.nodes[position].priority < self.nodes[parent].priority else { break }
            self.swap(position, parent)
            position = parent
        }
        return position
    }

    private mutating func sink(from start: Int) {
        var position = start
        while true {
            var least = position
            for child in [2 * position + 1, 2 * position + 2] where child < self.nodes.count {
                if self.nodes[child].priority < self.nodes[least].priority { least = child }
            }
            guard least != position else { return }
            self.swap(position, least)
            position = least
        }
    }

    private mutating func swap(_ left: Int, _ right: Int) {
        self.nodes.swapAt(left, right)
        self.positions[self.nodes[left].key] = left
        self.positions[self.nodes[right].key] = right
    }
}
