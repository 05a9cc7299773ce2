package import Relay

/// The key of a row of figures: a time and a subject.
package struct FigureKey: Hashable, Sendable {
    /// The beginning of the minute or ten minutes, in milliseconds since 1970.
    package let atMs: Int64
    package let subject: Subject

    /// The subject of the figures. A path always has a slash, so the three kinds are distinct in the store.
    package enum Subject: Hashable, Sendable {
        case everything
        /// All connections of a protocol, by its name: "rtmp".
        case connections(String)
        /// "app/name"
        case stream(String)

        package var text: String {
            switch self {
            case .everything: ""
            case .connections(let word): word
            case .stream(let path): path
            }
        }
    }
}

/// Figures of a time. Those of two times can be added. A value.
package struct Figures: Sendable, Equatable {
    package var bytesIn: UInt64 = 0
    package var bytesOut: UInt64 = 0
    /// Plays that began.
    package var plays: UInt64 = 0
    /// The sum of all viewers' times, in milliseconds.
    package var viewerMs: Int64 = 0
    /// The most viewers at any one time.
    package var peak = 0
    /// The arrival of a stream's media, while it was pushed.
    package var arrival = StreamHistory.Sum()

    package init(
        bytesIn: UInt64 = 0, bytesOut: UInt64 = 0, plays: UInt64 = 0, viewerMs: Int64 = 0, peak: Int = 0,
        arrival: StreamHistory.Sum = StreamHistory.Sum()
    ) {
        self.bytesIn = bytesIn
        self.bytesOut = bytesOut
        self.plays = plays
        self.viewerMs = viewerMs
        self.peak = peak
        self.arrival = arrival
    }

    package var isNothing: Bool { self == Figures() }

    package mutating func add(_ other: Figures) {
        self.bytesIn &+= other.bytesIn
        self.bytesOut &+= other.bytesOut
        self.plays &+= other.plays
        self.viewerMs &+= other.viewerMs
        self.peak = max(self.peak, other.peak)
        self.arrival.add(other.arrival)
    }
}
