import Synchronization

/// How many streams may be encoded anew at a time. Any thread.
package final class EncoderPlaces: Sendable {
    /// One of them, until it is let go.
    final class Place: Sendable {
        private let places: EncoderPlaces

        fileprivate init(_ places: EncoderPlaces) { self.places = places }

        deinit { self.places.taken.subtract(1, ordering: .relaxed) }
    }

    private let limit: Int
    private let taken = Atomic<Int>(0)

    package init(_ limit: Int) { self.limit = limit }

    package var count: Int { self.taken.load(ordering: .relaxed) }
    var hasRoom: Bool { self.count < self.limit }

    /// Nil if all are taken.
    func acquire() -> Place? {
        guard self.taken.add(1, ordering: .relaxed).newValue <= self.limit else {
            self.taken.subtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
